"""Which precision class an answer's errors show: fp64, fp32, tf32 or fp16 (one and the same by errors), or bf16."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench_engine.referee.tensors import FLOATS, PRECISION_ROUNDOFF, to_float64
from workbench_engine.referee.tolerance import Expected, compare

CLASSES = ("fp64", "fp32", "tf32", "bf16")
"""Finest first. fp16's roundoff is tf32's; what tells them apart is range, not error."""
SHOWN = {"fp64": "fp64", "fp32": "fp32", "tf32": "tf32 or fp16", "bf16": "bf16"}
FINE = 1.0 / 6.0


class Precision(Struct, frozen=True):
    """`name` is the class (as CLASSES has it), `error` the relative error over the whole output, against fp64."""

    name: str
    error: float

    @property
    def shown(self) -> str:
        return SHOWN[self.name]


def relative_error(got: NDArray[Any], truth: NDArray[np.float64], dtype: str) -> float:
    """‖y − y64‖/‖y64‖ over the finite elements; infinite when something finite came out non-finite."""
    values = to_float64(got.reshape(-1), dtype)
    truth = truth.reshape(-1)
    finite = np.isfinite(truth)
    if not bool(np.isfinite(values[finite]).all()):
        return float("inf")
    norm = float(np.linalg.norm(truth[finite]))
    return float(np.linalg.norm(values[finite] - truth[finite])) / norm if norm > 0 else 0.0


def class_of(error: float, reference_error: float, accumulate: int, dtype: str) -> Precision | None:
    """The finest class whose rounding explains `error`; None when not even bf16 does.

    An answer as good as the reference's is of the reference's class, whatever the task's sums do to errors.
    """
    own = {"float64": "fp64", "float32": "fp32", "float16": "tf32", "bfloat16": "bf16"}.get(dtype, "fp32")
    if error <= 3.0 * reference_error:
        return Precision(own, error)
    for name in CLASSES[CLASSES.index(own) :]:
        u = PRECISION_ROUNDOFF[name]
        # One rounding to a class leaves a root mean square of about u/2; of its neighbour, eight times that.
        grown = 4.0 * u * max(1.0, accumulate) ** 0.5 if name in ("fp64", "fp32") else 2.0 * u
        if error <= grown:
            return Precision(name, error)
    return None


def explains(got: NDArray[Any], expected: Expected, accumulate: int) -> str:
    """The lower precision class within whose tolerance a failed answer lies; "" when precision is not the reason."""
    if expected.exact or expected.dtype not in FLOATS:
        return ""
    for name in ("tf32", "bf16"):
        if PRECISION_ROUNDOFF[name] <= PRECISION_ROUNDOFF.get(expected.precision, 0.0):
            continue
        wider = Expected(expected.reference, expected.truth, expected.dtype, accumulate, name)
        if compare(got, wider).ok and _spread_out(got, expected):
            return name
    return ""


def _spread_out(got: NDArray[Any], expected: Expected) -> bool:
    """Rounding touches most elements; a dropped row or a wrong constant in a corner touches few."""
    error = np.abs(to_float64(got.reshape(-1), expected.dtype) - expected.truth)
    return float(np.mean(error > FINE * expected.allowed)) > 0.25
