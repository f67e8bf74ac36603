"""Running numbers of a pair stream, for the eye only: the verdict is the engine's."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench_sessions.projection import PairSeries

Floats = NDArray[np.float64]


class Running(Struct, frozen=True):
    """Median ratio t_ref / t_cand of the pairs so far with a 95 % interval from order statistics (no bootstrap)."""

    pairs: int
    median: float
    lower: float
    upper: float


def logs_of(series: PairSeries) -> Floats:
    """ln(t_ref / t_cand) of each pair; pairs with a time that is not positive are left out."""
    count = min(len(series.reference_s), len(series.candidate_s))
    reference = np.asarray(series.reference_s[:count], dtype=np.float64)
    candidate = np.asarray(series.candidate_s[:count], dtype=np.float64)
    good = (reference > 0) & (candidate > 0)
    return np.log(reference[good] / candidate[good])


def running(logs: Floats) -> Running | None:
    """Of all given; None without pairs. Ranks n/2 ± 1.96·√n/2, the binomial interval of a median."""
    count = int(logs.size)
    if count == 0:
        return None
    ordered = np.sort(logs)
    half = 1.96 * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - half))
    high = min(count - 1, math.ceil(count / 2 + half))
    return Running(
        pairs=count,
        median=math.exp(float(np.median(ordered))),
        lower=math.exp(float(ordered[low])),
        upper=math.exp(float(ordered[high])),
    )


def history(logs: Floats, points: int) -> list[Running]:
    """`running` after about `points` growing numbers of pairs, the last one with all."""
    count = int(logs.size)
    if count == 0 or points <= 0:
        return []
    ends = np.unique(np.linspace(1, count, min(points, count)).astype(np.int64))
    out = [running(logs[: int(end)]) for end in ends]
    return [one for one in out if one is not None]


def histogram(values_s: list[float], low: float, high: float, bins: int) -> list[int]:
    """Counts of values in `bins` equal bins of [low, high]; what lies outside counts in the nearest bin."""
    if bins <= 0 or not values_s:
        return [0] * max(bins, 0)
    if high <= low:
        out = [0] * bins
        out[bins // 2] = len(values_s)
        return out
    clipped = np.clip(np.asarray(values_s, dtype=np.float64), low, high)
    counts, _ = np.histogram(clipped, bins=bins, range=(low, high))
    return [int(n) for n in counts]
