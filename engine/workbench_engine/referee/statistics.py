"""What pairs of timings allow to be said: median log ratio, block-bootstrap interval, how many pairs are needed.

All in log space: d = ln(t_reference / t_candidate) for one pair; a speedup is exp(d). Pure functions on arrays.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

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
    """⌈n^(1/3)⌉: long enough for the slow drift of clocks, short enough to leave many blocks; two at least."""
    return max(1, min(n // 2, math.ceil(math.exp(math.log(n) / 3) - 1e-9)))


def bootstrap_interval(
    d: Array, rng: np.random.Generator, resamples: int = 2000, level: float = 0.95
) -> tuple[float, float]:
    """Percentile interval of the median by a moving-block bootstrap of whole pairs (circular blocks), as it comes.

    Too narrow on short series (see `widening`): for a look on the way, not for a claim.
    """
    tail = (1 - level) / 2
    low, high = np.quantile(resampled_medians(d, rng, resamples), [tail, 1 - tail])
    return float(low), float(high)


def resampled_medians(d: Array, rng: np.random.Generator, resamples: int) -> Array:
    """Medians [resamples] of `d` under the moving-block bootstrap (Künsch 1989; circular blocks, `block_length`).

    Raises ValueError without any pair.
    """
    n = len(d)
    if n == 0:
        raise ValueError("no pairs to estimate from")
    length = block_length(n)
    blocks = math.ceil(n / length)
    starts = rng.integers(0, n, size=(resamples, blocks))
    index = (starts[:, :, None] + np.arange(length)[None, None, :]).reshape(resamples, -1)[:, :n] % n
    return np.asarray(np.median(np.asarray(d, dtype=np.float64)[index], axis=1), dtype=np.float64)


def estimate(
    d: Array, rng: np.random.Generator, resamples: int = 2000, widened: bool = True, between: float = 0.0
) -> Estimate:
    """Median and 95 % interval of the log ratios `d`; `widened` False leaves out the correction for short series.

    `between`: standard deviation of d between two processes of the same code (see `between_processes`); no number of
    pairs of one process tells of it, so it is added to the interval in quadrature.
    """
    low, high = bootstrap_interval(d, rng, resamples)
    centre = float(np.median(d))
    factor = widening(len(d)) if widened else 1.0
    # A median may lie outside the quantiles of its resamples by rounding.
    below, above = factor * max(0.0, centre - low), factor * max(0.0, high - centre)
    luck = 1.96 * between
    return Estimate(centre, centre - math.hypot(below, luck), centre + math.hypot(above, luck), len(d))


def between_processes(runs: list[Array], least: float = 0.005) -> float:
    """σ of d between processes of the same code, from the series of the A/A floor: what their medians scatter beyond
    what their own pairs explain. `least` where the few runs happen to agree.

    Where a process's pages lie in the caches is luck that lasts its whole life: in 200 runs of the reference against
    itself intervals without this part covered 1 in 89.5 % (`workbench bench aa`).
    """
    if not runs:
        return least
    medians = np.array([float(np.median(d)) for d in runs])
    own = np.array([1.2533 * spread(d) / math.sqrt(len(d)) for d in runs])
    return max(least, math.sqrt(max(0.0, float(np.mean(medians**2) - np.mean(own**2)))))


def widening(n: int, level: float = 0.95) -> float:
    """By how much the bootstrap's percentile interval of `n` values must grow to keep its level.

    √(n / (n − ℓ)) · t(n/ℓ − 1) / z: resampled blocks of ℓ vary too little by that root, and a spread learned from n/ℓ
    blocks calls for Student's t in place of the normal. In simulation the bare interval of 8, 15, 30 and 150 values
    covers 87, 85, 90 and 94 %, the widened one 96, 95, 94 and 95 % (`tests/engine/referee/test_claims.py`).
    """
    if n < 2:
        return 1.0
    length = block_length(n)
    degrees = max(1.0, n / length - 1.0)
    z = NormalDist().inv_cdf((1 + level) / 2)
    return math.sqrt(n / max(1, n - length)) * t_quantile(degrees, level) / z


@lru_cache(maxsize=512)
def t_quantile(degrees: float, level: float = 0.95) -> float:
    """t with P(|T| ≤ t) = level for Student's t; `degrees` ≥ 1, not only whole.

    With t = √ν·tan θ the density is proportional to cos^(ν−1) θ on [0, π/2), integrated on a fine grid.
    """
    angle = np.linspace(0.0, math.pi / 2, 20_001)
    density = np.cos(angle) ** (degrees - 1)
    mass = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return math.sqrt(degrees) * math.tan(float(np.interp(level * mass[-1], mass, angle)))


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
    """(geomean, low, high) of speedups over tasks: 95 % by a bootstrap over tasks, and over blocks of pairs in each.

    A task drawn twice in one resample gets two resamples of its pairs. Raises ValueError without tasks or pairs.
    """
    if not tasks:
        raise ValueError("no tasks")
    if not all(len(d) for d in tasks):
        raise ValueError("a task has no pairs to estimate from")
    centre = math.exp(float(np.mean([np.median(d) for d in tasks])))
    drawn = rng.integers(0, len(tasks), size=(resamples, len(tasks)))
    medians = np.empty(drawn.shape)
    for number, d in enumerate(tasks):
        here = drawn == number
        medians[here] = resampled_medians(d, rng, int(here.sum()))
    low, high = np.exp(np.quantile(medians.mean(axis=1), [0.025, 0.975]))
    return centre, float(low), float(high)


def winners_curse(standard_error: float, k: int) -> float:
    """σ̂·√(2 ln k): by how much the best of k equally good, equally noisy measurements looks better than it is.

    `standard_error` is that of one measurement's ln speedup; the answer is in the same unit (an upper approximation of
    the expected maximum of k normals). 0 for fewer than two. A figure to show, never one to correct by: the cure is
    to measure the winner again.
    """
    return standard_error * math.sqrt(2.0 * math.log(k)) if k > 1 else 0.0


def standard_error(half_width: float) -> float:
    """σ̂ of an estimate from the half-width of its 95 % interval."""
    return half_width / 1.96
