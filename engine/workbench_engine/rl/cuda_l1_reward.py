"""CUDA-L1's reward protocol for one candidate: from the ratios of its pairs to a score, or to no score at all.

Source: CUDA-L1, arXiv 2507.14111, stage 3. Ratios t_ref / t_cand are split into 7 buckets; bucket means that vary by
more than 0.005 discard the measurement; the score is the median of the means, rounded to 2 decimals towards 1. A score
above 3, or above twice the best so far, is measured again on another device and rejected unless both agree within
10 %. Published are the numbers; ours is what they leave open: the variance is the population's, buckets are stretches
of time (so that drift shows as variance), agreement is |a - b| / min(a, b), and of two measurements the lower counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from statistics import fmean, median, pvariance

from msgspec import Struct

from workbench_engine.rl.reward import smooth
from workbench_sessions.events import Verdict

BUCKETS = 7
VARIANCE_GATE = 0.005
FAR = 3.0
JUMP = 2.0
AGREEMENT = 0.10
SMOOTHING = 1.5
FEW = 8
"""Below so many scores of a task their spread is not known, and the smoothing divides by 1 (a setting of ours)."""

FAILED = 0.0
"""Score of a candidate without a right answer, before smoothing (a setting of ours)."""

CORRECT: frozenset[Verdict] = frozenset(("FASTER", "SAME", "SLOWER", "AMBIGUOUS"))


class Score(Struct, frozen=True):
    """`value` is a ratio rounded to 2 decimals, None when the measurement does not count; `reason` says why."""

    value: float | None
    reason: str = ""


def bucket_means(ratios: Sequence[float], buckets: int = BUCKETS) -> list[float]:
    """Means of `buckets` consecutive stretches of equal length (the first ones one longer where it does not divide).

    Raises ValueError with fewer ratios than buckets.
    """
    if len(ratios) < buckets:
        raise ValueError(f"{len(ratios)} ratios do not fill {buckets} buckets")
    length, rest = divmod(len(ratios), buckets)
    means, start = [], 0
    for number in range(buckets):
        end = start + length + (number < rest)
        means.append(fmean(ratios[start:end]))
        start = end
    return means


def towards_one(score: float) -> float:
    """Two decimals, the rest cut off in the direction of 1: 1.118 → 1.11, 0.992 → 1.0. Decimal, on the shortest text
    that names the float, so that 1.15 stays 1.15."""
    exact = Decimal(repr(score))
    return float(exact.quantize(Decimal("0.01"), rounding=ROUND_FLOOR if exact > 1 else ROUND_CEILING))


def score_of(ratios: Sequence[float]) -> Score:
    """The score of one measurement from t_ref / t_cand of its pairs, in the order they were timed."""
    if len(ratios) < BUCKETS:
        return Score(None, f"cuda-l1: discarded, {len(ratios)} pairs do not fill {BUCKETS} buckets")
    if not all(math.isfinite(r) and r > 0.0 for r in ratios):
        return Score(None, "cuda-l1: discarded, a ratio is not a positive number")
    means = bucket_means(ratios)
    variance = pvariance(means)
    if variance > VARIANCE_GATE:
        return Score(None, f"cuda-l1: discarded, variance {variance:.4g} of the bucket means is above {VARIANCE_GATE}")
    return Score(towards_one(median(means)))


def needs_second(score: float, best: float | None) -> bool:
    """Whether a score is so good that another device must confirm it. `best`: the best so far of the task."""
    return score > FAR or (best is not None and score > JUMP * best)


def settle(first: float, second: Score, where: str) -> Score:
    """The score after the second measurement; `where` says in words what it was made on."""
    if second.value is None:
        return Score(None, f"cuda-l1: {first:.2f}× was measured again {where}: {second.reason}")
    low, high = sorted((first, second.value))
    text = f"cuda-l1: {first:.2f}×, again {where}: {second.value:.2f}×"
    if low <= 0.0 or Decimal(repr(high)) > Decimal(repr(low)) * Decimal(repr(1 + AGREEMENT)):
        return Score(None, f"{text}: rejected, more than {AGREEMENT:.0%} apart")
    return Score(low, text)


def smoothed(score: float, scores: Sequence[float]) -> float:
    """CUDA-L1's `clip((r - μ)/σ, -k, k)`, k = 1.5; μ and σ over `scores`, the task's successful ones so far.

    σ = 1 below FEW of them or without spread, μ = 1 (the reference) without any.
    """
    mu = fmean(scores) if scores else 1.0
    sigma = math.sqrt(pvariance(scores)) if len(scores) >= FEW else 1.0
    return smooth(score, mu, sigma if sigma > 1e-9 else 1.0, SMOOTHING)
