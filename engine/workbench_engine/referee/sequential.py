"""The contrast: one side timed whole, then the other, as most harnesses do. Never used for a verdict.

What it shows beside the paired protocol on the same candidates is why pairs are taken at all: whatever drifts between
the two halves (clocks, neighbours, heat) looks like a difference, and no interval inside one half knows of it.
"""

from __future__ import annotations

import numpy as np

from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.inputs import Bank
from workbench_engine.referee.statistics import Array, Estimate
from workbench_engine.tasks.contract import ShapeCase

WARM_UP = 3


def time_side(side: Candidate, case: ShapeCase, banks: list[Bank], calls: int, blocks: int, deadline_s: float) -> Array:
    """Seconds a call of `blocks` timed blocks of `calls` calls, one after the other, on the outside clock.

    Fresh contents in every block. `deadline_s` is for one block. Raises WorkerFailed.
    """
    ring = side.arena.slots_of(case.name)
    slots = [ring[i % len(ring)] for i in range(calls)]
    overhead_s = side.worker.round_trip()
    seconds = []
    for number in range(WARM_UP + blocks):
        for slot in {s.index: s for s in slots}.values():
            side.write_inputs(slot, [bank.window() for bank in banks])
        spent_s, _ = side.run(slots, deadline_s)
        if number >= WARM_UP:
            seconds.append(max(spent_s - overhead_s, 1e-9) / calls)
    return np.array(seconds)


def unpaired(reference_s: Array, candidate_s: Array, rng: np.random.Generator, resamples: int = 2000) -> Estimate:
    """ln of the ratio of medians, with the 95 % percentile interval of a bootstrap of each side on its own.

    Raises ValueError when a side is empty.
    """
    if not len(reference_s) or not len(candidate_s):
        raise ValueError("both sides need at least one time")
    centre = float(np.log(np.median(reference_s) / np.median(candidate_s)))
    reference = np.median(rng.choice(reference_s, (resamples, len(reference_s))), axis=1)
    candidate = np.median(rng.choice(candidate_s, (resamples, len(candidate_s))), axis=1)
    low, high = np.quantile(np.log(reference / candidate), [0.025, 0.975])
    return Estimate(d=centre, low=float(low), high=float(high), n=min(len(reference_s), len(candidate_s)))
