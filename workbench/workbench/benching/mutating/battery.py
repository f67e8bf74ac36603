"""Witnesses: inputs of a task's domain on which a faulty kernel differs from the honest one by more than rounding.

Independent of the referee's own inputs and tolerance. A mutant that no witness is found for is equivalent to its
original as far as anybody here can tell, and counts neither for nor against the referee.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench_engine.referee.tensors import FLOATS, NUMPY, UNIT_ROUNDOFF, from_float, to_float64
from workbench_engine.tasks.contract import TensorSpec

Array = NDArray[np.float64]
LABELS = (
    "any scale",
    "scale of each row",
    "from -8 to 8",
    "all negative",
    "all large",
    "whole numbers",
    "sparse",
    "one spike",
    "spike at the start",
    "spike at the end",
    "rising",
    "alternating",
    "tiny",
    "near zero",
    "plain",
)
C = 8.0
"""Error that honest fp32 arithmetic may have, in units of u·|y| + 4·√K·u·s: twice what the facts of the referee allow
(§4; four times √K, because a plain serial sum of like values rounds the same way again and again), so that what counts
as a fault is one beyond doubt."""


def contents(spec: TensorSpec, label: str, rng: np.random.Generator) -> NDArray[Any]:
    """One input (flat, storage dtype) of a kind named in LABELS; integers and bools follow their domain."""
    n = spec.numel
    if spec.dtype == "bool" or spec.domain == "bool":
        return rng.integers(0, 2, size=n).astype(NUMPY[spec.dtype])
    if spec.dtype not in FLOATS:
        high = spec.high if spec.domain == "index" and spec.high > 0 else 10
        edge = {"spike at the start": 0, "spike at the end": high - 1}.get(label)
        whole = rng.integers(0, high, size=n) if edge is None else np.full(n, edge)
        return whole.astype(NUMPY[spec.dtype])
    values: NDArray[Any] = _reals(spec, label, rng).astype(np.float32)
    if spec.domain == "positive":
        values = np.abs(values) + np.float32(1e-3)
    elif spec.domain == "unit":
        values = np.abs(values) / np.float32(max(1.0, float(np.abs(values).max(initial=0.0))))
    return from_float(values, spec.dtype)


def _reals(spec: TensorSpec, label: str, rng: np.random.Generator) -> Array:
    width = spec.shape[-1] if spec.shape else 1
    rows = spec.numel // max(1, width)
    x = rng.standard_normal((rows, width))
    if label == "any scale":
        x *= 10.0 ** rng.uniform(-3, 1.5)
    elif label == "scale of each row":
        x *= 10.0 ** rng.uniform(-3, 1.5, (rows, 1))
    elif label == "from -8 to 8":
        x = rng.uniform(-8, 8, x.shape)
    elif label == "all negative":
        x = -np.abs(x) - rng.choice([0.1, 3.0, 90.0])
    elif label == "all large":
        x += rng.choice([-60.0, 60.0, 200.0])
    elif label == "whole numbers":
        x = rng.integers(-9, 10, x.shape).astype(np.float64)
    elif label == "sparse":
        x *= rng.random(x.shape) < 0.02
    elif label == "one spike" and x.size:
        x[rng.integers(rows), rng.integers(width)] += rng.choice([-300.0, -30.0, 30.0, 300.0])
    elif label == "spike at the start":
        x[:, 0] += rng.choice([20.0, 200.0])
    elif label == "spike at the end":
        x[:, -1] += rng.choice([20.0, 200.0])
    elif label == "rising":
        x = np.linspace(-4.0, 4.0, x.size).reshape(x.shape)
    elif label == "alternating":
        x = np.where(np.arange(x.size) % 2 == 0, 1.5, -1.5).reshape(x.shape) + 0.01 * x
    elif label == "tiny":
        x *= 1e-5
    elif label == "near zero":
        x = rng.choice([0.0, -0.0, 1e-30, -1e-30, 1e-3, 1.0], x.shape)
    return x.reshape(-1)


class Difference(Struct, frozen=True):
    """A witness: on which input set, how many times the error that rounding explains, at which flat index."""

    where: str
    factor: float
    index: int


class Own(Struct, frozen=True):
    """What must be kept of an honest answer: all of it where only equality will do (integers), else where it is finite
    (None: everywhere) and the largest error of each row against the truth."""

    exact: NDArray[Any] | None = None
    finite: NDArray[np.bool_] | None = None
    row_error: Array | None = None


def _width(shape: tuple[int, ...]) -> int:
    return max(1, shape[-1]) if shape else 1


def own(honest: NDArray[Any], truth: Array, dtype: str, shape: tuple[int, ...]) -> Own:
    """Boils an honest answer down. Arrays are flat; `truth` in fp64."""
    if dtype not in FLOATS:
        return Own(exact=honest.copy())
    values = to_float64(honest, dtype)
    finite = np.isfinite(values) & np.isfinite(truth)
    error = np.where(finite, np.abs(np.where(finite, values, 0.0) - np.where(finite, truth, 0.0)), 0.0)
    rows = error.reshape(-1, _width(shape)).max(axis=1, keepdims=True)
    return Own(finite=None if finite.all() else finite, row_error=rows)


def difference(
    mutant: NDArray[Any],
    honest: Own,
    truth: Array,
    dtype: str,
    shape: tuple[int, ...],
    accumulate: int,
    where: str,
) -> Difference | None:
    """The witness in one output, or None. Arrays are flat; `truth` in fp64; `accumulate` = K, length of the sums.

    Rounding explains C·(u·|y| + 4·√K·u·s), s the root mean square of the truth over the element's row (last dimension),
    and C times the largest error of the honest kernel in that row. Integers and non-finite patterns must be equal.
    """
    if honest.exact is not None or honest.row_error is None:
        wrong = np.flatnonzero(mutant != honest.exact)
        return Difference(where, math.inf, int(wrong[0])) if wrong.size else None
    got = to_float64(mutant, dtype)
    finite = np.ones(got.shape, dtype=bool) if honest.finite is None else honest.finite
    broken = np.flatnonzero(finite & ~np.isfinite(got))
    if broken.size:
        return Difference(where, math.inf, int(broken[0]))
    width = _width(shape)
    t = np.where(finite, truth, 0.0).reshape(-1, width)
    error = np.abs(np.where(finite, got, 0.0).reshape(-1, width) - t)
    u = UNIT_ROUNDOFF[dtype]
    scale = np.sqrt(np.mean(t * t, axis=1, keepdims=True))
    explained = C * (u * np.abs(t) + 4.0 * math.sqrt(max(1, accumulate)) * u * scale)
    explained += C * honest.row_error + np.finfo(np.float32).tiny
    ratio = (error / explained).reshape(-1)
    worst = int(np.argmax(ratio)) if ratio.size else 0
    return Difference(where, float(ratio[worst]), worst) if ratio.size and ratio[worst] > 1.0 else None


def plan(cases: list[str], timed: str) -> Iterator[tuple[str, str]]:
    """(case, label) of every input set: all on the small shapes twice, once on the timed one."""
    for case in cases:
        for label in LABELS * (1 if case == timed else 2):
            yield case, label
