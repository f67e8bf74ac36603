"""The verdict: a pure decision from an estimate and the machine's A/A floor."""

from __future__ import annotations

import math

from workbench_engine.referee.statistics import Estimate
from workbench_sessions.events import Verdict


def verdict_of(estimate: Estimate, delta: float) -> Verdict:
    """FASTER when the whole interval lies above ln(1+δ), SLOWER when below −ln(1+δ), SAME when inside ±ln(1+δ).

    Anything else is AMBIGUOUS: more pairs are needed, and no claim is made.
    """
    floor = math.log1p(delta)
    if estimate.low > floor:
        return "FASTER"
    if estimate.high < -floor:
        return "SLOWER"
    if estimate.low >= -floor and estimate.high <= floor:
        return "SAME"
    return "AMBIGUOUS"


def enough(estimate: Estimate, half_width: float, least_pairs: int) -> bool:
    """Stop on the interval's width, never on significance."""
    return estimate.n >= least_pairs and estimate.half_width <= half_width


def roofline_s(bytes_moved: int | None, flops: int | None, bandwidth: float | None, peak: float | None) -> float | None:
    """Least seconds that `bytes_moved` (bytes) and `flops` allow at `bandwidth` (bytes/s) and `peak` (flop/s)."""
    parts = []
    if bytes_moved and bandwidth:
        parts.append(bytes_moved / bandwidth)
    if flops and peak:
        parts.append(flops / peak)
    return max(parts) if parts else None
