"""How many pairs: a quick look, then as many as the interval's width asks for, within a cap."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Literal, cast

import numpy as np

from workbench_engine.referee.judge import verdict_of
from workbench_engine.referee.measure import Pair, PairTimer
from workbench_engine.referee.protocol import Profile
from workbench_engine.referee.statistics import Array, couples, estimate, log_ratios, pairs_needed
from workbench_sessions.events import PairsTimed

BATCH = 8
"""Pairs between two looks; also what a live view gets at once."""

FIRST_BATCH = 4
FAR_BELOW = 0.7
"""ln ratio: when every one of the first pairs is this far below what matters, more of them would tell nothing."""


class Series:
    """Pairs as arrays (seconds per call)."""

    def __init__(self, pairs: list[Pair] | None = None) -> None:
        self.pairs = pairs or []

    @classmethod
    def of(cls, pairs: list[Pair]) -> Series:
        return cls(pairs)

    def extended(self, pairs: list[Pair]) -> Series:
        return Series([*self.pairs, *pairs])

    @property
    def reference_s(self) -> Array:
        return np.array([p.reference_s for p in self.pairs])

    @property
    def candidate_s(self) -> Array:
        return np.array([p.candidate_s for p in self.pairs])

    @property
    def d(self) -> Array:
        """ln ratios, one value for each couple of pairs in opposite order."""
        return couples(log_ratios(self.reference_s, self.candidate_s))

    def event(self, candidate: str, device: str, phase: str, calls: int, threads: int) -> PairsTimed:
        """The raw pairs as a fact."""
        return PairsTimed(
            candidate=candidate,
            device=device,
            phase=cast(Literal["floor", "search", "final", "threads"], phase),
            reference_s=[p.reference_s for p in self.pairs],
            candidate_s=[p.candidate_s for p in self.pairs],
            claimed_s=[p.claimed_s for p in self.pairs],
            order=[p.order for p in self.pairs],
            calls=calls,
            threads=threads,
        )


def target_pairs(d: Array, care: Profile) -> int:
    """Pairs that the present spread asks for, between `claim_pairs` and `cap_pairs`."""
    width = max(care.half_width, care.relative_width * abs(float(np.median(d))))
    return max(care.claim_pairs, min(care.cap_pairs, 2 * pairs_needed(d, width, care.cap_pairs)))


def sample_pairs(
    timer: PairTimer, care: Profile, promising_above: float, delta: float, rng: np.random.Generator
) -> Iterator[list[Pair]]:
    """Batches of pairs until it is enough.

    After `quick_pairs` a candidate that neither could beat `promising_above` nor looks like a claim stops (that can
    only lose a FASTER, never make one). All others go on until the interval is narrow enough, never "until
    significant".
    """
    start = time.monotonic()
    pairs: list[Pair] = []
    wanted = care.quick_pairs
    floor = math.log(max(promising_above, 1e-9))
    while len(pairs) < wanted and (len(pairs) < care.claim_pairs or time.monotonic() - start < care.cap_s):
        size = FIRST_BATCH if not pairs and care.quick_pairs < care.claim_pairs else BATCH
        batch = [timer.pair() for _ in range(min(size, wanted - len(pairs)))]
        pairs += batch
        yield batch
        if len(pairs) <= BATCH and care.quick_pairs < care.claim_pairs and Series.of(pairs).d.max() < floor - FAR_BELOW:
            return
        if len(pairs) < wanted:
            continue
        d = Series.of(pairs).d
        if len(pairs) == care.quick_pairs < care.claim_pairs:
            quick = estimate(d, rng, 500, widened=False)
            hopeless = quick.high < floor
            if hopeless and verdict_of(quick, delta) != "FASTER":
                return
        wanted = max(wanted, target_pairs(d, care))
