"""How far from the truth a correct answer may be: from an fp64 reference, dtype and accumulation length.

Elementwise: |y − y64| ≤ c·(u·|y64| + γ·s + e) + γ·|y64| + 2·|e_i| with e_i the error of the trusted low-precision
reference itself and e its root mean square, γ = 4√K·u_acc and s the scale of the output (its root mean
square: cancellation makes small outputs carry the error of large terms; a row's own statistic scales the error of its
outputs). Over the whole tensor: ‖y − y64‖/‖y64‖ ≤ max(3·e0, γ, 8·u) with e0 the error of the trusted low-precision
reference itself. u is the unit roundoff of the output dtype, u_acc that of the accumulator (fp32 below 32 bits); where
the operands may be rounded more coarsely than the accumulator (declared precision), γ grows by their roundoff.
Non-finite values must match in pattern exactly; NaN is never equal to anything. (Facts page of the referee, §4.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench_engine.referee.tensors import FLOATS, PRECISION_ROUNDOFF, UNIT_ROUNDOFF, to_float64

C = 4.0


class Expected:
    """The truth of one output on one input set, and what is allowed around it. Built once, compared often."""

    def __init__(
        self,
        reference: NDArray[Any],
        truth: NDArray[np.float64],
        dtype: str,
        accumulate: int,
        precision: str = "",
        scale: float | None = None,
    ) -> None:
        """`precision`: class of the arithmetic where it is lower than the dtype's ("" = the dtype's own).

        `scale`: root mean square of the whole output, where this is only a part of it.
        """
        self.dtype = dtype
        self.precision = precision
        self.exact = dtype not in FLOATS
        self.truth = truth.reshape(-1)
        self.reference = reference.reshape(-1).copy()
        if self.exact:
            return
        u = UNIT_ROUNDOFF[dtype]
        operands = max(u, PRECISION_ROUNDOFF.get(precision, 0.0))
        # Sums of low-precision operands run in fp32; the operands' own rounding does not grow with K.
        accumulator = min(u, UNIT_ROUNDOFF["float32"])
        coarse = operands if operands > accumulator else 0.0
        y0 = to_float64(self.reference, dtype)
        self.finite = np.isfinite(y0)
        self.all_finite = bool(self.finite.all())
        t = self.truth if self.all_finite else np.where(self.finite, self.truth, 0.0)
        if scale is None:
            scale = float(np.sqrt(np.mean(t * t))) if t.size else 0.0
        # Four times √K·u: a plain serial sum of few distinct values rounds the same way again and again.
        gamma = 4.0 * math.sqrt(max(1, accumulate)) * accumulator + coarse
        e_ref = np.abs(np.where(self.finite, y0, 0.0) - t)
        # The reference's level of error, not only its luck at one place.
        level = float(np.sqrt(np.mean(e_ref * e_ref))) if e_ref.size else 0.0
        self.allowed = C * (u * np.abs(t) + gamma * scale + level) + gamma * np.abs(t) + 2.0 * e_ref
        self.allowed += np.finfo(np.float64).tiny
        if dtype in ("float32", "float64"):
            self.allowed += 1e-38 if dtype == "float32" else 0.0
        else:
            self.allowed += 6e-8 if dtype == "float16" else 1e-38
        norm = float(np.linalg.norm(t))
        e0 = float(np.linalg.norm(e_ref)) / norm if norm > 0 else 0.0
        self.relative_limit = max(3 * e0, gamma, 8 * u, 4 * coarse)
        self.norm = norm

    def widen(self, factor: float) -> None:
        """Allow `factor` times as much: when the truth at hand is itself a low-precision answer."""
        if not self.exact:
            self.allowed *= factor
            self.relative_limit *= factor

    def conditioned(self, change: NDArray[np.float64]) -> None:
        """Allow what rounding does to the inputs of the last sum: `change` is the fp64 answer to inputs moved by as
        many unit roundoffs as a sum of K terms may err, less the truth. Where terms cancel, or a small spread is blown
        up, no arithmetic in this precision can do better."""
        if self.exact:
            return
        moved = np.abs(np.where(np.isfinite(change), change, 0.0)).reshape(-1)
        self.allowed += C * moved
        if self.norm > 0:
            self.relative_limit = max(self.relative_limit, C * float(np.linalg.norm(moved)) / self.norm)

    def usable(self) -> bool:
        """False when the reference itself overflows or is NaN somewhere: such an input set checks nothing."""
        return self.exact or (self.all_finite and bool(np.isfinite(self.truth).all()))


class Comparison(Struct, frozen=True):
    """`margin` = largest error / allowed (≤ 1 passes); `worst` = flat index of it; `detail` for a person."""

    ok: bool
    margin: float
    worst: int | None
    detail: str


def compare(got: NDArray[Any], expected: Expected) -> Comparison:
    """Judge one output (flat, storage dtype) against its truth."""
    got = got.reshape(-1)
    if expected.exact:
        wrong = got != expected.reference
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return Comparison(True, 0.0, None, "exact")
        worst = int(np.argmax(wrong))
        return Comparison(
            False,
            math.inf,
            worst,
            f"{count} of {got.size} differ; at {worst} {got[worst]} ≠ {expected.reference[worst]}",
        )
    values = to_float64(got, expected.dtype)
    finite = np.isfinite(values)
    if not bool(finite.all()):
        bad = ~finite & expected.finite
        if bool(bad.any()):
            worst = int(np.argmax(bad))
            kind = "NaN" if math.isnan(values[worst]) else "infinite"
            return Comparison(
                False, math.inf, worst, f"{int(bad.sum())} of {got.size} are {kind} or unwritten, first at {worst}"
            )
    error = np.abs(values - expected.truth)
    ratio = error / expected.allowed
    worst = int(np.argmax(ratio)) if ratio.size else 0
    margin = float(ratio[worst]) if ratio.size else 0.0
    relative = float(np.sqrt(np.dot(error, error))) / expected.norm if expected.norm > 0 else 0.0
    whole = relative / expected.relative_limit
    if margin > 1.0:
        share = float(np.count_nonzero(ratio > 1.0)) / ratio.size
        return Comparison(
            False,
            margin,
            worst,
            f"{share:.2%} of elements off; worst at {worst}: got {values[worst]:.9g}, expected "
            f"{expected.truth[worst]:.9g} (error {margin:.3g}× allowed)",
        )
    if whole > 1.0:
        return Comparison(
            False,
            whole,
            worst,
            f"error over the whole output {relative:.3g} is {whole:.3g}× the allowed {expected.relative_limit:.3g}",
        )
    return Comparison(True, max(margin, whole), worst, f"error {max(margin, whole):.2g} of allowed")
