"""How fast is it: reference and candidate in interleaved pairs, on the station's own clock.

For each pair both sides get the same fresh contents in fresh slots, everything else is equalised (outputs poisoned,
second-level cache flushed), the order is a coin, and a random share of the timed calls is checked in full. The time
of record is taken outside the workers: request sent to answer received, less the empty round trip.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from workbench_engine.referee.arena import Arena, Slot
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.inputs import Bank
from workbench_engine.referee.protocol import Protocol
from workbench_engine.referee.reference import Reference
from workbench_engine.referee.tensors import is_poison, to_float64
from workbench_engine.referee.tolerance import Expected, compare
from workbench_engine.referee.workers import wire
from workbench_engine.tasks.contract import ShapeCase

LONGEST_BLOCK_S = 0.05
"""A timed block of a candidate is not made longer than this by batching."""


class Pair(Struct, frozen=True):
    """Seconds per call of both sides; `order` "AB" when the reference ran first."""

    reference_s: float
    candidate_s: float
    claimed_s: float
    order: str


class TimedWrong(Exception):
    """A timed call gave a wrong answer: `str()` says which and how; it was right when it was only checked."""


class Flush:
    """Pushes both sides' data out of the second-level cache, so that neither profits from the other's traffic."""

    def __init__(self, nbytes: int) -> None:
        self._buffer = np.ones(nbytes // 8, dtype=np.float64)

    def __call__(self) -> None:
        self._buffer *= 1.0


def calls_per_pair(reference_s: float, protocol: Protocol) -> int:
    """Inner batch: calls in one timed block so that the reference's block lasts `inner_batch_s`."""
    return max(1, min(protocol.inner_batch_cap, math.ceil(protocol.inner_batch_s / max(reference_s, 1e-7))))


class PairTimer:
    """Times pairs of one candidate against the reference on one case."""

    def __init__(
        self,
        reference: Reference,
        candidate: Candidate,
        case: ShapeCase,
        banks: list[Bank],
        calls: int,
        reference_s: float,
        protocol: Protocol,
        flush: Flush,
        rng: np.random.Generator,
    ) -> None:
        assert reference.arena is not None
        self._reference = reference
        self._candidate = candidate
        self._case = case
        self._banks = banks
        self.calls = calls
        self._protocol = protocol
        self._flush = flush
        self._rng = rng
        self._reference_arena: Arena = reference.arena
        self._slowest_call_s = min(protocol.call_deadline_s, max(2.0, 1000 * reference_s))
        self._deadline_s = max(1.0, protocol.slowest_ratio * reference_s * calls)
        self._overhead_reference_s = reference.worker.round_trip()
        self._overhead_candidate_s = candidate.worker.round_trip()
        self.checked = 0

    def warm_up(self, pairs: int = 2) -> None:
        """Untimed calls first; a slow candidate gets a smaller inner batch, so that a pair stays short."""
        slot = self._draw(self._candidate.arena)[:1]
        for index, bank in enumerate(self._banks):
            self._candidate.arena.view(slot[0].inputs[index])[...] = bank.window()
        spent, _ = self._candidate.run(slot, self._slowest_call_s)
        self.calls = max(1, min(self.calls, int(LONGEST_BLOCK_S / max(spent, 1e-9))))
        self._deadline_s = max(self._deadline_s, 4.0 * spent * self.calls)
        for _ in range(pairs if spent < LONGEST_BLOCK_S else 0):
            self.pair(check=False)

    def pair(self, check: bool | None = None) -> Pair:
        """One pair. Raises WorkerFailed, TimedWrong."""
        rng = self._rng
        theirs = self._draw(self._reference_arena)
        ours = self._draw(self._candidate.arena)
        for reference_slot, candidate_slot in zip(theirs, ours, strict=True):
            for index, bank in enumerate(self._banks):
                window = bank.window()
                self._reference_arena.view(reference_slot.inputs[index])[...] = window
                self._candidate.arena.view(candidate_slot.inputs[index])[...] = window
            self._candidate.arena.poison(candidate_slot)
        reference_first = bool(rng.integers(2))
        reference_s = claimed_s = candidate_s = 0.0
        for turn in range(2):
            self._flush()
            if (turn == 0) == reference_first:
                reference_s = self._time_reference(theirs)
            else:
                candidate_s, claimed_s = self._candidate.run(ours, self._deadline_s)
                candidate_s = max(candidate_s - self._overhead_candidate_s, 1e-9)
        if check if check is not None else rng.random() < self._protocol.check_share:
            self._check_fully(theirs, ours)
        else:
            self._check_sampled(ours)
        n = self.calls
        return Pair(reference_s / n, candidate_s / n, claimed_s / n, "AB" if reference_first else "BA")

    def _time_reference(self, slots: list[Slot]) -> float:
        payload = wire.pack_slots([s.index for s in slots])
        spent, _ = self._reference.worker.timed_run(payload, self._protocol.setup_deadline_s)
        return max(spent - self._overhead_reference_s, 1e-9)

    def _draw(self, arena: Arena) -> list[Slot]:
        ring = arena.slots_of(self._case.name)
        if len(ring) >= self.calls:
            return [ring[i] for i in self._rng.choice(len(ring), size=self.calls, replace=False)]
        return [ring[i] for i in self._rng.integers(len(ring), size=self.calls)]

    def _check_sampled(self, ours: list[Slot]) -> None:
        """Any unwritten element among a few random ones means that the call did not do its work."""
        slot = ours[int(self._rng.integers(len(ours)))]
        if self._candidate.worker.returns_tensors:
            return
        for place in slot.outputs:
            view = self._candidate.arena.view(place)
            if view.size == 0:
                continue
            picks = self._rng.integers(view.size, size=min(view.size, self._protocol.sampled_elements))
            if bool(is_poison(view[picks], place.spec.dtype).any()):
                raise TimedWrong("a timed call left its output unwritten")

    def _check_fully(self, theirs: list[Slot], ours: list[Slot]) -> None:
        """Compare every output of this pair's calls with what the reference answered to the same contents."""
        self._reference.worker.request(wire.COLLECT, b"", self._protocol.call_deadline_s)
        self._candidate.collect()
        pick = int(self._rng.integers(len(ours)))
        for mine, other in zip(ours[pick].outputs, theirs[pick].outputs, strict=True):
            own = self._reference_arena.view(other)
            expected = Expected(own, to_float64(own, other.spec.dtype), other.spec.dtype, self._case.accumulate)
            expected.widen(2.0)
            result = compare(self._candidate.arena.view(mine), expected)
            if not result.ok:
                raise TimedWrong(f"a timed call answered wrongly: {result.detail}")
        self.checked += 1

    def last_check(self) -> None:
        """One more pair, checked in full, so that the end of the series is covered whatever the coins said."""
        self.pair(check=True)
