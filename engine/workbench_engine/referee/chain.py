"""The second clock: what a call costs in a chain of dependent calls, seen from outside.

T(N) is the wall time of N calls of which each one's inputs are changed by the digest of the output before it; the
slope between two lengths is the cost of a call that is really finished, whoever does its work and whenever. The
digests commit the worker to its outputs; afterwards the station repeats the changes on its own copies, checks every
digest against the bytes in the arena and a few answers in full. (Referee's facts, D8.)
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench_engine.referee.arena import Place, Slot
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.inputs import Bank
from workbench_engine.referee.worker_process import WorkerFailed
from workbench_engine.referee.workers import chaining, wire
from workbench_engine.tasks.contract import ShapeCase

LONGEST = 24
"""Calls in the longer chain, at most."""
REPEATS = 5
FEWEST = 3
BUDGET_S = 0.3
"""Seconds of calls that all repeats together may take, as long as FEWEST are made."""


class Slope(Struct, frozen=True):
    """Seconds a call: the least of several slopes, and how much the better half of them scatters.

    `plain_s`: of plain calls made in between, on the same slots: what the same calls cost at the same moment.
    """

    seconds: float
    noise_s: float
    plain_s: float = 0.0


class ChainBroken(Exception):
    """A digest does not belong to the output in the arena: `str()` says which; `code` is the finding's."""

    def __init__(self, text: str, code: str = "late-output") -> None:
        super().__init__(text)
        self.code = code


class Chain:
    """Chains on one case. `free`: indices of the inputs whose elements may be exchanged."""

    def __init__(self, case: ShapeCase, banks: list[Bank], rng: np.random.Generator, deadline_s: float) -> None:
        self._case = case
        self._banks = banks
        self._rng = rng
        self._deadline_s = deadline_s
        self._free = [i for i, spec in enumerate(case.of("input")) if spec.domain != "fixed"]

    def slope(self, side: Candidate, call_s: float) -> Slope:
        """Slope of one side, whose calls take about `call_s`. Raises WorkerFailed, ChainBroken."""
        ring = side.arena.slots_of(self._case.name)
        longer = min(LONGEST, len(ring))
        shorter = max(1, longer // 4)
        if longer == shorter:
            raise ValueError("a chain needs two slots at least")
        affordable = int(BUDGET_S / max(call_s * (longer + shorter), 1e-9))
        repeats = max(FEWEST, min(REPEATS, affordable))
        slopes, plain = [], []
        for number in range(repeats):
            order = (shorter, longer) if number % 2 else (longer, shorter)
            spent = {count: self.run(side, count)[0] for count in order}
            slopes.append((spent[longer] - spent[shorter]) / (longer - shorter))
            plain.append(side.run(ring[:longer], self._deadline_s)[0] / longer)
        best = sorted(slopes)[: max(2, repeats // 2 + 1)]
        return Slope(max(best[0], 0.0), float(np.median(best) - best[0]), float(np.median(plain)))

    def run(self, side: Candidate, count: int) -> tuple[float, list[Slot], list[list[NDArray[Any]]]]:
        """(seconds, slots used, inputs that each call must have seen). Raises WorkerFailed, ChainBroken."""
        ring = side.arena.slots_of(self._case.name)
        slots = [ring[int(i)] for i in self._rng.choice(len(ring), size=count, replace=False)]
        given = []
        for slot in slots:
            contents = [bank.window().copy() for bank in self._banks]
            side.arena.poison(slot)
            side.write_inputs(slot, contents)
            given.append(contents)
        seed = secrets.randbits(63)
        request = {"seed": seed, "slots": [s.index for s in slots], "swap": self._free}
        payload = json.dumps(request).encode()
        start = time.perf_counter()
        told = side.worker.request(wire.CHAIN, payload, self._deadline_s)
        spent = time.perf_counter() - start
        try:
            digests = msgspec.json.decode(told, type=list[int])
        except msgspec.DecodeError:
            digests = []
        if len(digests) != count:
            raise WorkerFailed("the chain of calls was not answered with its digests", "forged", "result-channel")
        self._verify(side, slots, given, seed, digests)
        return spent, slots, given

    def _verify(
        self, side: Candidate, slots: list[Slot], given: list[list[NDArray[Any]]], seed: int, digests: list[int]
    ) -> None:
        """Every digest against the arena; the changes repeated on `given`, which then is what each call saw."""
        before = seed
        for position, (slot, contents, told) in enumerate(zip(slots, given, digests, strict=True)):
            places, buffer = _flat(contents, slot.inputs)
            chaining.disturb(buffer.data, [places[i] for i in self._free], before)
            if side.inputs_intact(slot, contents) is not None:
                raise ChainBroken(
                    f"call {position} of a chain ran on other inputs than the chain gives", "input-mutation"
                )
            outputs = [_entry(place, place.offset) for place in slot.outputs]
            if chaining.digest_of(side.arena.memory(), outputs, before) != told:
                raise ChainBroken(f"the output of call {position} of a chain is not what was reported when it was done")
            before = told


def _entry(place: Place, offset: int) -> list[Any]:
    return [offset, place.spec.nbytes, place.spec.dtype, list(place.spec.shape)]


def _flat(contents: list[NDArray[Any]], places: tuple[Place, ...]) -> tuple[list[list[Any]], NDArray[np.uint8]]:
    """`contents` moved into one buffer (their arrays become views of it) and where in it each lies."""
    sizes = [place.spec.nbytes for place in places]
    buffer = np.empty(sum(sizes), dtype=np.uint8)
    entries, at = [], 0
    for index, (place, size) in enumerate(zip(places, sizes, strict=True)):
        buffer[at : at + size] = contents[index].view(np.uint8)
        contents[index] = buffer[at : at + size].view(contents[index].dtype)
        entries.append(_entry(place, at))
        at += size
    return entries, buffer
