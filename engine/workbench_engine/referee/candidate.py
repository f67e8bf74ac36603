"""One candidate loaded into one fresh worker, seen through its arena. Used once, then discarded."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from workbench_engine.referee.arena import Arena, Slot
from workbench_engine.referee.protocol import Protocol
from workbench_engine.referee.reference import Reference, slot_table
from workbench_engine.referee.worker_process import Worker
from workbench_engine.referee.workers import wire
from workbench_engine.sandbox.memory import sealed_copy
from workbench_engine.sandbox.process import printable


class Candidate:
    """Owns the worker; the arena is the station's, handed on from candidate to candidate and poisoned between."""

    def __init__(self, worker: Worker, arena: Arena, protocol: Protocol) -> None:
        self.worker = worker
        self.arena = arena
        self._protocol = protocol

    def load(
        self, reference: Reference, kind: str, library: str | None, source: str, cores: Sequence[int], threads: int
    ) -> None:
        """Hand over arena and code. Raises WorkerFailed with the loader's message."""
        arena = self.arena
        arena.mend_red_zones()
        for slot in arena.slots:
            arena.poison(slot)
        self._copy_state(reference)
        dims = {slot.case.name: list(slot.case.dims.values()) for slot in arena.slots}
        setup: dict[str, Any] = {
            "mode": reference.task.mode,
            "cores": list(cores),
            "threads": threads,
            "bytes": arena.bytes,
            "slots": slot_table(arena, reference.init),
            "dims": dims,
        }
        # The first answer says that the worker is up; whatever runs in the cage from here on is the candidate's doing.
        self.worker.timed_run(b"", self._protocol.setup_deadline_s)
        self.worker.activity.settle()
        fds: tuple[int, ...] = (arena.fd,)
        library_fd = -1
        if kind == "kernel":
            assert library is not None
            library_fd = sealed_copy(library)
            fds = (arena.fd, library_fd)
        else:
            setup["source"] = source
        try:
            self.worker.request(wire.SETUP, json.dumps(setup).encode(), self._protocol.setup_deadline_s, fds)
            self.worker.request(wire.PREPARE, b"", self._protocol.setup_deadline_s)
        finally:
            if library_fd >= 0:
                os.close(library_fd)

    def _copy_state(self, reference: Reference) -> None:
        assert reference.arena is not None
        done: set[str] = set()
        for slot in self.arena.slots:
            if slot.case.name in done:
                continue
            done.add(slot.case.name)
            original = reference.arena.slots_of(slot.case.name)[0]
            for mine, theirs in zip(slot.state, original.state, strict=True):
                self.arena.view(mine)[...] = reference.arena.view(theirs)

    def state_intact(self, reference: Reference, slot: Slot, state: Sequence[NDArray[Any]] | None = None) -> bool:
        """Whether the case's state still holds `state` (flat arrays; None: what the reference's holds), bit for bit."""
        if state is None:
            assert reference.arena is not None
            original = reference.arena.slots_of(slot.case.name)[0]
            state = [reference.arena.view(place) for place in original.state]
        return all(
            np.array_equal(self.arena.view(mine).view(np.uint8), theirs.view(np.uint8))
            for mine, theirs in zip(slot.state, state, strict=True)
        )

    def write_state(self, slot: Slot, state: Sequence[NDArray[Any]]) -> None:
        """New contents for the state of the slot's case, in the arena only (see `load_state`)."""
        for place, values in zip(slot.state, state, strict=True):
            self.arena.view(place)[...] = values

    def load_state(self) -> None:
        """Load the arena's state into the candidate's models; a kernel reads it through its pointers anyway."""
        if self.worker.returns_tensors:
            self.worker.request(wire.SET_STATE, b"", self._protocol.setup_deadline_s)

    def second_instance(self, slot: Slot) -> None:
        """Build another model for the slot's case from the arena's state. Modules only. Raises WorkerFailed."""
        self.worker.request(wire.INSTANCE, wire.pack_slots([slot.index]), self._protocol.setup_deadline_s)

    def profile(self, slot: Slot) -> bytes:
        """JSON of where the time of a few calls goes, as the worker says (see `workers.profiling`). Modules only."""
        return self.worker.request(wire.PROFILE, wire.pack_slots([slot.index]), self._protocol.setup_deadline_s)

    def set_mode(self, train: bool) -> None:
        """Call `train(train)` on the candidate's models. Modules only."""
        self.worker.request(wire.MODE, b"train" if train else b"eval", self._protocol.setup_deadline_s)

    def differences(self) -> list[tuple[str, str]]:
        """(finding code, what) of what the candidate left changed in its process, as its worker says."""
        told = self.worker.request(wire.GUARD, b"", self._protocol.setup_deadline_s)
        try:
            noted = msgspec.json.decode(told, type=list[tuple[str, str]])[:8]
        except msgspec.DecodeError:
            return [("patched-function", "the worker's own report is not readable")]
        return [(code, printable(text)[:400]) for code, text in noted]

    def write_inputs(self, slot: Slot, contents: Sequence[NDArray[Any]]) -> None:
        for place, values in zip(slot.inputs, contents, strict=True):
            self.arena.view(place)[...] = values

    def inputs_intact(self, slot: Slot, contents: Sequence[NDArray[Any]]) -> int | None:
        """None when no input was written to, else the index of the first that was (compared bit for bit)."""
        for index, (place, values) in enumerate(zip(slot.inputs, contents, strict=True)):
            if not np.array_equal(self.arena.view(place).view(np.uint8), values.view(np.uint8)):
                return index
        return None

    def run(self, slots: Sequence[Slot], deadline_s: float, second: bool = False) -> tuple[float, float]:
        """(outside, claimed) seconds of one block of calls, on the second instance if asked. Raises WorkerFailed."""
        flag = wire.SECOND if second else 0
        return self.worker.timed_run(wire.pack_slots([s.index | flag for s in slots]), deadline_s)

    def shift(self) -> None:
        """Move the next calls' temporaries to other pages; a kernel has none but the slots, which are drawn anew."""
        if self.worker.returns_tensors:
            self.worker.request(wire.SHIFT, b"", self._protocol.call_deadline_s)

    def collect(self) -> None:
        """Bring returned tensors into the arena (a kernel wrote them there already). Raises WorkerFailed."""
        self.worker.request(wire.COLLECT, b"", self._protocol.call_deadline_s)

    def outputs(self, slot: Slot) -> list[NDArray[Any]]:
        return [self.arena.view(p) for p in slot.outputs]

    def close(self) -> None:
        self.worker.close()
