"""Claims over several tasks: "faster on k of m" with the chance of even one false claim kept below alpha."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np
from msgspec import Struct

from workbench_engine.referee.statistics import Array, resampled_medians, widening

ALPHA = 0.05
RESAMPLES = 10_000
"""For p-values: Holm asks the first of m tasks for alpha / m, which 1 / (RESAMPLES + 1) must lie well below."""


class FasterOn(Struct, frozen=True):
    """`faster` names the tasks that may be claimed, of those in `p_values`, at family-wise error rate `alpha`."""

    faster: tuple[str, ...]
    p_values: dict[str, float]
    alpha: float

    @property
    def k(self) -> int:
        return len(self.faster)

    @property
    def m(self) -> int:
        return len(self.p_values)


def p_faster(d: Array, delta: float, rng: np.random.Generator, resamples: int = RESAMPLES) -> float:
    """One-sided p-value of "no faster than the A/A floor": (k + 1) / (B + 1), k of B resampled medians ≤ ln(1 + δ).

    `d` are ln ratios of pairs (couples), `delta` the floor as a share. The resamples are spread as the interval of a
    short series is (`statistics.widening`), so that p and interval agree. Never 0: B resamples cannot say so (Davison
    and Hinkley 1997, §4.2). 1 without any pair.
    """
    if len(d) == 0:
        return 1.0
    centre = float(np.median(d))
    medians = centre + widening(len(d)) * (resampled_medians(d, rng, resamples) - centre)
    return (int(np.count_nonzero(medians <= math.log1p(delta))) + 1) / (resamples + 1)


def holm(p_values: Sequence[float], alpha: float = ALPHA) -> list[bool]:
    """Which hypotheses are rejected by Holm's step-down procedure (1979), in the order given.

    The i-th smallest (i = 0, 1, …) of m must be ≤ alpha / (m - i); the first that is not ends it. Controls the
    family-wise error rate whatever the dependence. NaN is never rejected. Raises ValueError unless 0 < alpha < 1.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"Holm needs 0 < alpha < 1, not {alpha}")
    m = len(p_values)
    rejected = [False] * m
    order = sorted(range(m), key=lambda i: math.inf if math.isnan(p_values[i]) else p_values[i])
    for rank, index in enumerate(order):
        if not p_values[index] <= alpha / (m - rank):
            break
        rejected[index] = True
    return rejected


def faster_on(p_values: Mapping[str, float], alpha: float = ALPHA) -> FasterOn:
    """How many of these tasks may be said to be faster, and which. A task that found nothing belongs in with p = 1."""
    names = list(p_values)
    rejected = holm([p_values[name] for name in names], alpha)
    return FasterOn(tuple(n for n, yes in zip(names, rejected, strict=True) if yes), dict(p_values), alpha)


def wilson(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of a share (Wilson 1927): honest also for 0 of n. (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = 0.0 if successes == 0 else (centre - half) / scale
    return low, 1.0 if successes == trials else (centre + half) / scale
