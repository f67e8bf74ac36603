"""How fast is it: reference and candidate in interleaved pairs, on the station's own clock.

The reference that is timed is a process of its own (the pace), started like a candidate's and used for nothing else: a
process that has also run other shapes and fp64 carries its past in its heap, and measured 10 % slower than a fresh
copy.
In a pair both sides get the same fresh contents in fresh slots. Each side in turn, by the toss of a coin, makes one
untimed call, is given its inputs, then makes the timed block: so neither pays for caches, page tables or branch
predictors that the other has left cold (identical code measured up to 25 % apart by order alone), and no call before
the timed ones can have seen their contents. The time of record is taken outside the workers: request sent to answer
received, less the empty round trip. Spots of the timed answers are compared in every second pair, whole answers in a
random few. What each process does with the processor between its calls is noted beside it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench_engine.referee.arena import Slot
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.gates import Block
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

    def __init__(self, text: str, code: str = "timed-call-wrong") -> None:
        super().__init__(text)
        self.code = code


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
        precision: str = "",
    ) -> None:
        self._precision = precision
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
        self.blocks: list[Block] = []
        self.pace_blocks: list[Block] = []
        self._last_cpu_s: dict[int, float] = {}
        self._stolen_s = 0.0
        self.brought_s: list[float] = []
        self.pace_brought_s: list[float] = []
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
        self.blocks, self.pace_blocks, self.brought_s, self.pace_brought_s = [], [], [], []

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
                before_s = self._candidate.worker.activity.cpu_s()
                reference_s, _ = self._time(self._pace, theirs, windows, self._pace_overhead_s)
                self._stolen_s += self._candidate.worker.activity.cpu_s() - before_s
            else:
                candidate_s, claimed_s = self._time(self._candidate, ours, windows, self._overhead_s)
        toss = rng.random()
        if check if check is not None else toss < self._protocol.check_share:
            self._check_fully(theirs, ours)
        elif check is None and toss < self._protocol.spot_share:
            self._check_spots(theirs, ours)
        else:
            self._check_written(ours)
        n = self.calls
        return Pair(reference_s / n, candidate_s / n, claimed_s / n, "AB" if pace_first else "BA")

    def last_check(self) -> None:
        """One more pair, checked in full, so that the end of the series is covered whatever the coins said."""
        self.pair(check=True)

    def _time(
        self, side: Candidate, slots: list[Slot], windows: list[Contents], overhead_s: float
    ) -> tuple[float, float]:
        """(outside, claimed) seconds of one block: one call to warm up, inputs written, the calls that count."""
        activity = side.worker.activity
        start_cpu_s = activity.cpu_s()
        side.shift()
        shifted_cpu_s = activity.cpu_s()
        side.run(self._draw(side)[:1], self._deadline_s)
        warm_cpu_s = activity.cpu_s()
        self._refresh(side, slots, windows)
        ready_cpu_s = activity.cpu_s()
        spent, claimed = side.run(slots, self._deadline_s)
        done_cpu_s = activity.cpu_s()
        between = start_cpu_s - self._last_cpu_s.get(id(side), start_cpu_s)
        self._last_cpu_s[id(side)] = done_cpu_s
        timed_s = max(spent - overhead_s, 1e-9)
        idle_s = between + (shifted_cpu_s - start_cpu_s) + (ready_cpu_s - warm_cpu_s)
        blocks = self.blocks if side is self._candidate else self.pace_blocks
        used_s = max(done_cpu_s - ready_cpu_s, 1e-9)
        warm_s = max(warm_cpu_s - shifted_cpu_s, 1e-9)
        stolen_s, self._stolen_s = (self._stolen_s, 0.0) if side is self._candidate else (0.0, self._stolen_s)
        blocks.append(Block(warm_s, used_s, claimed, idle_s, len(slots), spent, stolen_s))
        return timed_s, claimed

    def _bring(self, side: Candidate) -> None:
        """Bring returned tensors into the arena; what that costs the processor is noted apart from idle work."""
        activity = side.worker.activity
        before_s = activity.cpu_s()
        side.collect()
        used_s = activity.cpu_s() - before_s
        (self.brought_s if side is self._candidate else self.pace_brought_s).append(used_s)
        if id(side) in self._last_cpu_s:
            self._last_cpu_s[id(side)] += used_s

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

    def _check_written(self, ours: list[Slot]) -> None:
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
                raise TimedWrong("a timed call left its output unwritten", "unwritten-output")

    def _check_spots(self, theirs: list[Slot], ours: list[Slot]) -> None:
        """Compare a stretch and a scatter of one call's answer with the reference's answer to the same contents."""
        self._bring(self._pace)
        self._bring(self._candidate)
        pick = int(self._rng.integers(len(ours)))
        count = self._protocol.spot_elements
        for mine, other in zip(ours[pick].outputs, theirs[pick].outputs, strict=True):
            whole = self._pace.arena.view(other)
            start = int(self._rng.integers(max(1, whole.size - count + 1)))
            scatter = self._rng.integers(max(1, whole.size), size=min(whole.size, count))
            spots = np.concatenate([np.arange(start, min(whole.size, start + count)), scatter])
            truth = to_float64(whole, other.spec.dtype)
            scale = float(np.sqrt(np.dot(truth, truth) / max(1, truth.size))) if truth.size else 0.0
            self._compare(self._candidate.arena.view(mine)[spots], whole[spots], truth[spots], other.spec.dtype, scale)

    def _check_fully(self, theirs: list[Slot], ours: list[Slot]) -> None:
        """Compare one of this pair's calls in full with what the reference answered to the same contents."""
        self._bring(self._pace)
        self._bring(self._candidate)
        pick = int(self._rng.integers(len(ours)))
        for mine, other in zip(ours[pick].outputs, theirs[pick].outputs, strict=True):
            whole = self._pace.arena.view(other)
            truth = to_float64(whole, other.spec.dtype)
            self._compare(self._candidate.arena.view(mine), whole, truth, other.spec.dtype)
        self.checked += 1

    def _compare(
        self, got: NDArray[Any], own: NDArray[Any], truth: NDArray[np.float64], dtype: str, scale: float | None = None
    ) -> None:
        expected = Expected(own, truth, dtype, self._case.accumulate, self._precision, scale)
        expected.widen(2.0)
        result = compare(got, expected)
        if not result.ok:
            raise TimedWrong(f"a timed call answered wrongly: {result.detail}")
