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
DISTRIBUTIONS = (
    "normal",
    "uniform",
    "integers",
    "shifted",
    "small",
    "large",
    "one-hot",
    "heavy-tail",
    "constant",
    "negative",
    "spiked",
)
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
    elif distribution == "negative":
        values = -np.abs(values) - np.float32(100.0)
    elif distribution == "spiked":
        values[_spikes(spec, rng)] += np.float32(200.0)
    elif distribution == "large":
        values *= 30.0
    elif distribution == "heavy-tail":
        values *= np.exp(np.float32(1.5) * rng.standard_normal(n, dtype=np.float32))
    elif distribution == "constant":
        values[...] = values[0] if n else 0.0
    return values


def _spikes(spec: TensorSpec, rng: np.random.Generator) -> NDArray[np.int64]:
    """One flat index in each row: the last column in half of the rows, anywhere in the others."""
    width = spec.shape[-1] if spec.shape else 1
    rows = spec.numel // width if width else 0
    columns = np.where(rng.random(rows) < 0.5, width - 1, rng.integers(0, max(1, width), size=rows))
    return np.asarray(np.arange(rows) * width + columns, dtype=np.int64)


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


def nudged(stored: NDArray[Any], spec: TensorSpec, units: float, rng: np.random.Generator) -> NDArray[Any]:
    """Every float moved by `units` unit roundoffs, up or down; integers and inputs of domain "fixed" as they are."""
    if spec.dtype not in FLOATS or spec.domain == "fixed":
        return stored
    values = to_float64(stored, spec.dtype)
    step = 2.0 * units * UNIT_ROUNDOFF[spec.dtype]
    return from_float(values * (1.0 + step * rng.choice((-1.0, 1.0), size=values.shape)), spec.dtype)


SLACK = 65_521
"""Elements by which a bank is longer than its tensor."""


class Bank:
    """Fresh contents for every timed call at the price of a few passes: two random windows of a pre-made random
    array, mixed in a random proportion.

    Neither a window nor a mixture comes back, so nothing learnt from earlier calls (their contents, fingerprints of
    them, answers to them) fits a later one; a window alone would only be an old acquaintance, shifted.
    """

    def __init__(self, spec: TensorSpec, rng: np.random.Generator, own: NDArray[Any] | None = None) -> None:
        """`own`: the task's own values, for an input of domain "fixed", which keeps them."""
        slack = 0 if own is not None else SLACK
        self._n = spec.numel
        self._rng = rng
        self._spec = spec
        wide = TensorSpec(spec.name, (spec.numel + slack,), spec.dtype, spec.role, spec.domain, spec.high)
        self._values = contents(wide, TIMED, rng) if own is None else own
        self._fixed = own is not None
        self._slack = slack

    def window(self) -> NDArray[Any]:
        """Contents of one call (flat, storage dtype): of the task's domain, and for reals N(0, 1) still."""
        if self._fixed:
            return self._values
        one, other = self._part(), self._part()
        spec = self._spec
        if spec.dtype == "bool" or spec.domain == "bool":
            return np.asarray(np.bitwise_xor(one, other))
        if spec.dtype not in FLOATS:
            high = spec.high if spec.domain == "index" and spec.high > 0 else 10
            return np.asarray((one + other + int(self._rng.integers(high))) % high, dtype=one.dtype)
        angle = self._rng.uniform(0.2, 1.3)
        if spec.domain == "unit":
            share = np.sin(angle) ** 2
            return _mixed(one, other, share, 1.0 - share, spec.dtype)
        return _mixed(one, other, np.sin(angle), np.cos(angle), spec.dtype)

    def _part(self) -> NDArray[Any]:
        start = int(self._rng.integers(0, self._slack + 1))
        return self._values[start : start + self._n]


def _mixed(one: NDArray[Any], other: NDArray[Any], a: float, b: float, dtype: str) -> NDArray[Any]:
    """a·one + b·other in the storage of `dtype`."""
    if dtype in ("float32", "float64"):
        mixed: NDArray[Any] = np.multiply(one, one.dtype.type(a))
        mixed += np.multiply(other, one.dtype.type(b))
        return mixed
    reals = to_float64(one, dtype).astype(np.float32) * np.float32(a)
    reals += to_float64(other, dtype).astype(np.float32) * np.float32(b)
    return from_float(reals, dtype)
