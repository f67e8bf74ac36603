"""Input contents: several distributions, because a kernel can be right on one and wrong on the next.

Each distribution breaks a particular cheat or bug: small integers make float sums exact (a skipped element shows
bit for bit), the shifted one breaks "the mean is zero", one-hot rows show skipped indices, large values overflow an
exp without its maximum, the heavy tail breaks low precision. Timing uses one fixed distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench_engine.referee.tensors import FLOATS, NUMPY, UNIT_ROUNDOFF, from_float, to_float64
from workbench_engine.tasks.contract import TensorSpec

TIMED = "normal"
DISTRIBUTIONS = ("normal", "uniform", "integers", "shifted", "small", "large", "one-hot", "heavy-tail", "constant")
FEW_VALUES = frozenset({"one-hot", "constant"})
"""Distributions with one or two distinct values."""
ON_TIMED_SHAPE = ("normal", "integers", "shifted")
"""On the (big) timed shape these suffice; hidden shapes get all."""


def contents(spec: TensorSpec, distribution: str, rng: np.random.Generator) -> NDArray[Any]:
    """Contents of one input (flat, storage dtype) of `distribution`; integers and bools follow their domain."""
    n = spec.numel
    if spec.dtype == "bool" or spec.domain == "bool":
        return rng.integers(0, 2, size=n).astype(NUMPY[spec.dtype])
    if spec.dtype not in FLOATS:
        high = spec.high if spec.domain == "index" and spec.high > 0 else 10
        return rng.integers(0, high, size=n).astype(NUMPY[spec.dtype])
    return from_float(_domain(_reals(spec, distribution, rng), spec), spec.dtype)


def _reals(spec: TensorSpec, distribution: str, rng: np.random.Generator) -> NDArray[np.float32]:
    n = spec.numel
    if distribution == "uniform":
        return rng.random(n, dtype=np.float32)
    if distribution == "integers":
        return rng.integers(-3, 4, size=n).astype(np.float32)
    if distribution == "one-hot":
        width = spec.shape[-1] if spec.shape else 1
        values = np.zeros(n, dtype=np.float32)
        if n and width:
            rows = n // width
            values[np.arange(rows) * width + rng.integers(0, width, size=rows)] = 1.0
        return values
    values = rng.standard_normal(n, dtype=np.float32)
    if distribution == "shifted":
        values += 5.0
    elif distribution == "small":
        values *= 1e-3
    elif distribution == "large":
        values *= 30.0
    elif distribution == "heavy-tail":
        values *= np.exp(np.float32(1.5) * rng.standard_normal(n, dtype=np.float32))
    elif distribution == "constant":
        values[...] = values[0] if n else 0.0
    return values


def _domain(values: NDArray[np.float32], spec: TensorSpec) -> NDArray[np.float32]:
    if spec.domain == "positive":
        return np.abs(values) + np.float32(1e-3)
    if spec.domain == "unit":
        top = np.abs(values).max(initial=0.0)
        return np.asarray(np.abs(values) / np.float32(max(1.0, top)), dtype=np.float32)
    return values


def moved_state(stored: NDArray[Any], spec: TensorSpec, rng: np.random.Generator) -> NDArray[Any]:
    """A parameter moved away from identity (1 and 0 hide a forgotten multiply or add); sign kept if all > 0."""
    if spec.dtype not in FLOATS or spec.numel == 0:
        return stored
    values = to_float64(stored, spec.dtype)
    scale = float(values.std()) or 0.25
    moved = values * (1 + 0.2 * rng.standard_normal(values.shape)) + 0.25 * scale * rng.standard_normal(values.shape)
    if bool((values > 0).all()):
        moved = np.abs(moved) + 1e-2
    return from_float(moved, spec.dtype)


def nudged(stored: NDArray[Any], spec: TensorSpec, rng: np.random.Generator) -> NDArray[Any]:
    """Every float moved by one unit roundoff, up or down; integers and inputs of domain "fixed" as they are."""
    if spec.dtype not in FLOATS or spec.domain == "fixed":
        return stored
    values = to_float64(stored, spec.dtype)
    step = 2.0 * UNIT_ROUNDOFF[spec.dtype]
    return from_float(values * (1.0 + step * rng.choice((-1.0, 1.0), size=values.shape)), spec.dtype)


SLACK = 65_521
"""Elements by which a bank is longer than its tensor."""


class Bank:
    """Fresh contents for every timed call at the price of a copy: a random window of a pre-made random array.

    The window's offset is unpredictable, so no earlier call's contents (or their fingerprint) come back.
    """

    def __init__(self, spec: TensorSpec, rng: np.random.Generator, own: NDArray[Any] | None = None) -> None:
        """`own`: the task's own values, for an input of domain "fixed", which keeps them."""
        slack = 0 if own is not None else SLACK
        self._n = spec.numel
        self._rng = rng
        wide = TensorSpec(spec.name, (spec.numel + slack,), spec.dtype, spec.role, spec.domain, spec.high)
        self._values = contents(wide, TIMED, rng) if own is None else own
        self._slack = slack

    def window(self) -> NDArray[Any]:
        start = int(self._rng.integers(0, self._slack + 1))
        return self._values[start : start + self._n]
