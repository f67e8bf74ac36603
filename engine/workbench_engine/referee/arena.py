"""The shared memory between station and one worker: slots of inputs and outputs with red zones around each tensor.

Every slot lies at its own unpredictable offset, so a "fresh call" is a fresh pointer too. Red zones are checked after
calls: a write outside an output is a finding even where it did no visible harm.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench_engine.referee.tensors import NUMPY, poison
from workbench_engine.tasks.contract import ShapeCase, TensorSpec

ALIGN = 64
RED_ZONE = 256
READ_RED = 0xFF
"""Round what is read: as any float it is NaN, so a kernel that reads beyond an input and uses it gives itself away."""
WRITE_RED = 0xA5
"""Round what is written: no NaN, so that one carried over from beyond an input shows."""


class Place(Struct, frozen=True):
    """Where one tensor lies in the arena, in bytes."""

    offset: int
    spec: TensorSpec


class Slot(Struct, frozen=True):
    """One set of inputs, state and outputs of one case. `wide` holds the fp64 outputs (reference worker only)."""

    index: int
    case: ShapeCase
    inputs: tuple[Place, ...]
    state: tuple[Place, ...]
    outputs: tuple[Place, ...]
    wide: tuple[Place, ...] = ()


class Arena:
    """A memfd mapped here and in one worker. Single writer at a time, by protocol."""

    def __init__(self, cases: list[tuple[ShapeCase, int]], with_wide: bool) -> None:
        """`cases`: each case with its number of slots (a ring); state lies once for each case."""
        self._end = RED_ZONE
        self._zones: list[tuple[int, int]] = []
        self.slots: list[Slot] = []
        self._by_case: dict[str, list[Slot]] = {}
        for case, ring in cases:
            state = tuple(self._place(spec) for spec in case.of("state"))
            for _ in range(ring):
                inputs = tuple(self._place(spec) for spec in case.of("input"))
                outputs = tuple(self._place(spec) for spec in case.of("output"))
                wide = tuple(self._place(_widened(s)) for s in case.of("output")) if with_wide else ()
                slot = Slot(len(self.slots), case, inputs, state, outputs, wide)
                self.slots.append(slot)
                self._by_case.setdefault(case.name, []).append(slot)
        self.bytes = -(-self._end // mmap.PAGESIZE) * mmap.PAGESIZE
        self.fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.bytes)
        # A worker that could shrink it would have the station die of SIGBUS.
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._map = mmap.mmap(self.fd, self.bytes, mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self._bytes: NDArray[np.uint8] = np.frombuffer(self._map, dtype=np.uint8)
        self.mend_red_zones()

    def _place(self, spec: TensorSpec) -> Place:
        """A place at an unpredictable distance from the last, with a red zone right before and right after it."""
        jump = ALIGN * secrets.randbelow(64)
        offset = -(-(self._end + RED_ZONE + jump) // ALIGN) * ALIGN
        end = offset + spec.nbytes
        red = WRITE_RED if spec.role == "output" else READ_RED
        self._zones += [(offset - RED_ZONE, red), (end, red)]
        self._end = end + RED_ZONE
        return Place(offset, spec)

    def slots_of(self, case: str) -> list[Slot]:
        return self._by_case[case]

    def view(self, place: Place) -> NDArray[Any]:
        """Flat writable view in storage dtype."""
        kind = NUMPY[place.spec.dtype]
        return self._bytes[place.offset : place.offset + place.spec.nbytes].view(kind)

    def memory(self) -> memoryview:
        """All bytes, as a worker sees them."""
        return memoryview(self._map)

    def poison(self, slot: Slot) -> None:
        for place in slot.outputs:
            poison(self.view(place), place.spec.dtype)

    def red_zones_intact(self) -> bool:
        """Whether every byte right before and after each tensor is as it was laid."""
        return all(bool((self._bytes[start : start + RED_ZONE] == red).all()) for start, red in self._zones)

    def mend_red_zones(self) -> None:
        for start, red in self._zones:
            self._bytes[start : start + RED_ZONE] = red

    def close(self) -> None:
        os.close(self.fd)
        # Views may still be referenced by an exception's frames; the mapping goes with the last of them.
        self._bytes = np.empty(0, dtype=np.uint8)
        try:
            self._map.close()
        except BufferError:
            return


def _widened(spec: TensorSpec) -> TensorSpec:
    return TensorSpec(spec.name, spec.shape, "float64", spec.role)


def ring_length(case: ShapeCase, calls: int, budget_bytes: int) -> int:
    """Slots for `calls` distinct ones a pair, a few more for fresh pointers, within `budget_bytes`."""
    one = sum(t.nbytes for t in case.tensors if t.role != "state") + 1
    return max(1, calls, min(calls + 3, budget_bytes // one))
