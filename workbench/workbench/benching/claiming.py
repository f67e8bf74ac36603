"""What may be claimed of several finished runs: faster on k of m tasks, the geometric mean, and how lucky a best is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from workbench_engine.referee.claims import ALPHA, FasterOn, faster_on, p_faster
from workbench_engine.referee.statistics import (
    couples,
    estimate,
    geometric_mean_interval,
    log_ratios,
    standard_error,
    winners_curse,
)
from workbench_sessions.projection import PairSeries

SEED = 20_240
"""Of the resampling, so that the same pairs always allow the same claim."""


class Claim(Struct, frozen=True):
    """One task's best: ln ratios (couples of pairs) of the measurement that confirmed it, and the p-value of "no
    faster than the A/A floor". `luck`: by how much (in ln) the best of all search timings is expected to look better
    than it is; the confirming measurement is free of it. Nothing confirmed: no ratios and p = 1."""

    d: list[float] = []
    p: float = 1.0
    luck: float = 0.0


def claim_of(series: Sequence[PairSeries], delta: float, timed: int) -> Claim:
    """Claim of a best candidate from its series of pairs, oldest first; `timed` candidates competed for it."""
    confirmed = [s for s in series if s.phase == "final" and s.threads == 1]
    searched = [s for s in series if s.phase == "search" and s.threads == 1]
    rng = np.random.default_rng(SEED)
    luck = 0.0
    if searched:
        found = estimate(_d(searched[-1]), rng)
        luck = winners_curse(standard_error(found.half_width), timed)
    if not confirmed:
        return Claim(luck=luck)
    d = _d(confirmed[-1])
    return Claim(d.tolist(), p_faster(d, delta, rng), luck)


def _d(series: PairSeries) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return couples(log_ratios(np.array(series.reference_s), np.array(series.candidate_s)))


class Claims(Struct, frozen=True):
    """Over tasks: speedups as ratios; a task without a confirmed best counts as 1."""

    faster: FasterOn
    geomean: float
    low: float
    high: float


def claims(by_task: Mapping[str, Claim]) -> Claims:
    """Raises ValueError without tasks."""
    rng = np.random.default_rng(SEED)
    tasks = [np.array(one.d or [0.0]) for one in by_task.values()]
    centre, low, high = geometric_mean_interval(tasks, rng)
    return Claims(faster_on({name: one.p for name, one in by_task.items()}), centre, low, high)


def sentences(by_task: Mapping[str, Claim]) -> list[str]:
    """The claims in words."""
    found = claims(by_task)
    said = [
        f"faster than eager on {found.faster.k} of {found.faster.m} tasks "
        f"(Holm: at most {ALPHA:.0%} chance of one false claim among them)",
        f"geometric mean {found.geomean:.3f}× [{found.low:.3f} {found.high:.3f}], nothing confirmed counted as 1",
    ]
    largest = max((one.luck for one in by_task.values()), default=0.0)
    if largest > 0.0:
        said.append(
            f"the best of a search is expected to look up to {np.expm1(largest):.1%} better than it is "
            "(winner's curse); confirmed bests were measured again in a fresh process"
        )
    return said
