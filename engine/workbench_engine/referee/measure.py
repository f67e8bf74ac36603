"""How fast is it: reference and candidate in interleaved pairs, on the station's own clock.

The reference that is timed is a process of its own (the pace), started like a candidate's and used for nothing else: a
process that has also run other shapes and fp64 carries its past in its heap, and measured 10 % slower than a fresh
copy.
In a pair both sides get the same fresh contents in fresh slots. Each side in turn, by the toss of a coin, is given its
inputs, makes one untimed call, then the timed block: so neither pays for caches, page tables or branch predictors that
the other has left cold (identical code measured up to 25 % apart by order alone). The time of record is taken outside
the workers: request sent to answer received, less the empty round trip. A random share of the timed calls is checked
in full.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench_engine.referee.arena import Slot
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.inputs import Bank
from workbench_engine.referee.protocol import Protocol
from workbench_engine.referee.tensors import is_poison, to_float64
from workbench_engine.referee.tolerance import Expected, compare
from workbench_engine.tasks.contract import ShapeCase

Contents = list[NDArray[Any]]
"""One array for each input of a call."""

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


def calls_per_pair(reference_s: float, protocol: Protocol) -> int:
    """Inner batch: calls in one timed block so that the reference's block lasts `inner_batch_s`."""
    return max(1, min(protocol.inner_batch_cap, math.ceil(protocol.inner_batch_s / max(reference_s, 1e-7))))


class PairTimer:
    """Times pairs of one candidate against the pace (the reference in a candidate's place) on one case."""

    def __init__(
        self,
        pace: Candidate,
        candidate: Candidate,
        case: ShapeCase,
        banks: list[Bank],
        calls: int,
        reference_s: float,
        protocol: Protocol,
        rng: np.random.Generator,
    ) -> None:
        self._pace = pace
        self._candidate = candidate
        self._case = case
        self._banks = banks
        self.calls = calls
        self._protocol = protocol
        self._rng = rng
        self._slowest_call_s = min(protocol.call_deadline_s, max(2.0, 1000 * reference_s))
        self._deadline_s = max(1.0, protocol.slowest_ratio * reference_s * calls)
        self._pace_overhead_s = pace.worker.round_trip()
        self._overhead_s = candidate.worker.round_trip()
        self.checked = 0
        self._next_first: bool | None = None

    def warm_up(self, pairs: int = 2) -> None:
        """Untimed calls first; a slow candidate gets a smaller inner batch, so that a pair stays short."""
        slots = self._draw(self._candidate)[:1]
        self._refresh(self._candidate, slots, self._windows(1))
        spent, _ = self._candidate.run(slots, self._slowest_call_s)
        self.calls = max(1, min(self.calls, int(LONGEST_BLOCK_S / max(spent, 1e-9))))
        self._deadline_s = max(self._deadline_s, 4.0 * spent * self.calls)
        for _ in range(pairs if spent < LONGEST_BLOCK_S else 0):
            self.pair(check=False)
        self._next_first = None

    def pair(self, check: bool | None = None) -> Pair:
        """One pair; `check` None leaves it to chance whether it is checked in full. Raises WorkerFailed, TimedWrong."""
        rng = self._rng
        windows = self._windows(self.calls)
        theirs, ours = self._draw(self._pace), self._draw(self._candidate)
        # Orders come in couples, AB then BA or the reverse: see `statistics.couples`.
        pace_first = bool(rng.integers(2)) if self._next_first is None else self._next_first
        self._next_first = None if self._next_first is not None else not pace_first
        reference_s = claimed_s = candidate_s = 0.0
        for turn in range(2):
            if (turn == 0) == pace_first:
                reference_s, _ = self._time(self._pace, theirs, windows, self._pace_overhead_s)
            else:
                candidate_s, claimed_s = self._time(self._candidate, ours, windows, self._overhead_s)
        if check if check is not None else rng.random() < self._protocol.check_share:
            self._check_fully(theirs, ours)
        else:
            self._check_sampled(ours)
        n = self.calls
        return Pair(reference_s / n, candidate_s / n, claimed_s / n, "AB" if pace_first else "BA")

    def last_check(self) -> None:
        """One more pair, checked in full, so that the end of the series is covered whatever the coins said."""
        self.pair(check=True)

    def _time(
        self, side: Candidate, slots: list[Slot], windows: list[Contents], overhead_s: float
    ) -> tuple[float, float]:
        """(outside, claimed) seconds of one block: inputs written, one call to warm up, the calls that count."""
        self._refresh(side, slots, windows)
        side.shift()
        side.run(self._draw(side)[:1], self._deadline_s)
        spent, claimed = side.run(slots, self._deadline_s)
        return max(spent - overhead_s, 1e-9), claimed

    def _windows(self, count: int) -> list[Contents]:
        return [[bank.window() for bank in self._banks] for _ in range(count)]

    def _refresh(self, side: Candidate, slots: list[Slot], windows: list[Contents]) -> None:
        for slot, contents in zip(slots, windows, strict=True):
            side.arena.poison(slot)
            side.write_inputs(slot, contents)

    def _draw(self, side: Candidate) -> list[Slot]:
        ring = side.arena.slots_of(self._case.name)
        if len(ring) >= self.calls:
            return [ring[i] for i in self._rng.choice(len(ring), size=self.calls, replace=False)]
        return [ring[i] for i in self._rng.integers(len(ring), size=self.calls)]

    def _check_sampled(self, ours: list[Slot]) -> None:
        """Any unwritten element among a few random ones means that the call did not do its work."""
        if self._candidate.worker.returns_tensors:
            return
        slot = ours[int(self._rng.integers(len(ours)))]
        for place in slot.outputs:
            view = self._candidate.arena.view(place)
            if view.size == 0:
                continue
            picks = self._rng.integers(view.size, size=min(view.size, self._protocol.sampled_elements))
            if bool(is_poison(view[picks], place.spec.dtype).any()):
                raise TimedWrong("a timed call left its output unwritten")

    def _check_fully(self, theirs: list[Slot], ours: list[Slot]) -> None:
        """Compare one of this pair's calls in full with what the reference answered to the same contents."""
        self._pace.collect()
        self._candidate.collect()
        pick = int(self._rng.integers(len(ours)))
        for mine, other in zip(ours[pick].outputs, theirs[pick].outputs, strict=True):
            own = self._pace.arena.view(other)
            expected = Expected(own, to_float64(own, other.spec.dtype), other.spec.dtype, self._case.accumulate)
            expected.widen(2.0)
            result = compare(self._candidate.arena.view(mine), expected)
            if not result.ok:
                raise TimedWrong(f"a timed call answered wrongly: {result.detail}")
        self.checked += 1
