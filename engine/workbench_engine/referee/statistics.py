"""What pairs of timings allow to be said: median log ratio, block-bootstrap interval, how many pairs are needed.

All in log space: d = ln(t_reference / t_candidate) for one pair; a speedup is exp(d). Pure functions on arrays.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Estimate(Struct, frozen=True):
    """Median of d with a 95 % interval (`low`, `high`), from `n` pairs. All natural logs of ratios."""

    d: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def speedup(self) -> float:
        return math.exp(self.d)


def log_ratios(reference_s: Array, candidate_s: Array) -> Array:
    """d_i of each pair. Times must be positive seconds."""
    return np.log(np.asarray(reference_s, dtype=np.float64) / np.asarray(candidate_s, dtype=np.float64))


def couples(d: Array) -> Array:
    """Means of consecutive d: pairs come in couples of opposite order (AB, BA), and whoever is second may be slower.

    With both orders in each value the effect cancels; a median over single pairs would sit between two modes. An odd
    last pair is left out; a single pair is returned as it is.
    """
    d = np.asarray(d, dtype=np.float64)
    whole = len(d) // 2 * 2
    return d if whole == 0 else d[:whole].reshape(-1, 2).mean(axis=1)


def block_length(n: int) -> int:
    """⌈n^(1/3)⌉: long enough for the slow drift of clocks, short enough to leave many blocks."""
    return max(1, math.ceil(math.exp(math.log(n) / 3) - 1e-9))


def bootstrap_interval(
    d: Array, rng: np.random.Generator, resamples: int = 2000, level: float = 0.95
) -> tuple[float, float]:
    """Percentile interval of the median by a moving-block bootstrap of whole pairs (circular blocks)."""
    n = len(d)
    if n == 0:
        raise ValueError("no pairs to estimate from")
    length = block_length(n)
    blocks = math.ceil(n / length)
    starts = rng.integers(0, n, size=(resamples, blocks))
    index = (starts[:, :, None] + np.arange(length)[None, None, :]).reshape(resamples, -1)[:, :n] % n
    medians = np.median(np.asarray(d)[index], axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return float(low), float(high)


def estimate(d: Array, rng: np.random.Generator, resamples: int = 2000) -> Estimate:
    """Median and interval of the log ratios `d`."""
    low, high = bootstrap_interval(d, rng, resamples)
    return Estimate(d=float(np.median(d)), low=low, high=high, n=len(d))


def spread(d: Array) -> float:
    """σ_d = 1.4826·MAD: the standard deviation of the bulk, blind to outliers."""
    d = np.asarray(d)
    return float(1.4826 * np.median(np.abs(d - np.median(d))))


def pairs_needed(d: Array, half_width: float, cap: int) -> int:
    """n = ⌈(π/2)·(1.96·σ_d/w)²⌉, at most `cap`: pairs until the median's interval is ±w wide."""
    return min(cap, max(1, math.ceil((math.pi / 2) * (1.96 * spread(d) / half_width) ** 2)))


def floor_from_runs(medians: list[float], least: float = 0.01) -> float:
    """δ of the A/A runs: max(least, 95th percentile of |median d|). What is below it is noise of this machine."""
    if not medians:
        raise ValueError("an A/A floor needs at least one run")
    return max(least, float(np.quantile(np.abs(medians), 0.95)))


def geometric_mean_interval(
    tasks: list[Array], rng: np.random.Generator, resamples: int = 2000
) -> tuple[float, float, float]:
    """(geomean, low, high) of speedups over tasks: bootstrap over tasks, and over pairs inside each task."""
    if not tasks:
        raise ValueError("no tasks")
    centre = math.exp(float(np.mean([np.median(d) for d in tasks])))
    means = np.empty(resamples)
    for r in range(resamples):
        chosen = rng.integers(0, len(tasks), size=len(tasks))
        medians = [np.median(rng.choice(tasks[j], size=len(tasks[j]))) for j in chosen]
        means[r] = np.mean(medians)
    low, high = np.exp(np.quantile(means, [0.025, 0.975]))
    return centre, float(low), float(high)
