"""The station's hold on the reference: describe the task, answer with outputs, answer in fp64."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from workbench_engine.referee.arena import Arena, Slot
from workbench_engine.referee.inputs import moved_state
from workbench_engine.referee.protocol import Protocol
from workbench_engine.referee.worker_process import Worker, WorkerFailed, reference_worker
from workbench_engine.referee.workers import wire
from workbench_engine.sandbox.level import SandboxLevel
from workbench_engine.tasks.contract import Task, TaskRejected


class _Described(msgspec.Struct):
    task: Task
    init: dict[str, str]


def slot_table(arena: Arena, init: dict[str, str] | None = None, init_seed: int = 42) -> list[dict[str, Any]]:
    """What a worker is told of its slots: offsets, sizes, shapes; nothing of contents to come."""

    def places(slot_places: Sequence[Any]) -> list[list[Any]]:
        return [[p.offset, p.spec.nbytes, p.spec.dtype, list(p.spec.shape)] for p in slot_places]

    table = []
    for slot in arena.slots:
        table.append(
            {
                "case": slot.case.name,
                "inputs": places(slot.inputs),
                "state": places(slot.state),
                "outputs": places(slot.outputs),
                "wide": places(slot.wide),
                "state_names": [p.spec.name for p in slot.state],
                "init": (init or {}).get(slot.case.name, "[]"),
                "init_seed": init_seed,
            }
        )
    return table


class Reference:
    """A reference worker with its task described. Raises TaskRejected (bad task) or WorkerFailed (it died)."""

    def __init__(self, level: SandboxLevel, source: str, path: str, core: int, protocol: Protocol) -> None:
        self._protocol = protocol
        self._core = core
        self.worker: Worker = reference_worker(level, [core], threads=1)
        request = json.dumps({"source": source, "path": path}).encode()
        try:
            answer = self.worker.request(wire.DESCRIBE, request, protocol.setup_deadline_s)
        except WorkerFailed as failure:
            self.worker.close()
            if failure.code == "refused":
                raise TaskRejected(str(failure)) from None
            raise TaskRejected(f"{path}: loading the task failed: {failure}") from None
        described = msgspec.json.decode(answer, type=_Described)
        self.task = described.task
        self.init = described.init
        self.arena: Arena | None = None

    def set_up(self, arena: Arena, threads: int = 1) -> None:
        """Map `arena` into the worker and move its parameters away from identity."""
        self.arena = arena
        setup = {"cores": [self._core], "threads": threads, "bytes": arena.bytes, "slots": slot_table(arena)}
        payload = json.dumps(setup).encode()
        self.worker.request(wire.SETUP, payload, self._protocol.setup_deadline_s, (arena.fd,))

    def move_state(self, rng: np.random.Generator) -> None:
        """New contents for every parameter and buffer, loaded into the reference's models."""
        assert self.arena is not None
        seen: set[str] = set()
        for slot in self.arena.slots:
            if slot.case.name in seen:
                continue
            seen.add(slot.case.name)
            for place in slot.state:
                view = self.arena.view(place)
                view[...] = moved_state(view.copy(), place.spec, rng)
        self.worker.request(wire.SET_STATE, b"", self._protocol.setup_deadline_s)

    def load_state(self, slot: Slot, state: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Put `state` (flat arrays) into the slot's case; returns copies of what it replaced."""
        assert self.arena is not None
        before = [self.arena.view(place).copy() for place in slot.state]
        for place, values in zip(slot.state, state, strict=True):
            self.arena.view(place)[...] = values
        self.worker.request(wire.SET_STATE, b"", self._protocol.setup_deadline_s)
        return before

    def set_mode(self, train: bool) -> None:
        """Call `train(train)` on the reference's models."""
        self.worker.request(wire.MODE, b"train" if train else b"eval", self._protocol.setup_deadline_s)

    def outputs(self, slot: Slot) -> list[np.ndarray[Any, Any]]:
        """Run the slot's inputs in the task's own precision; flat copies in storage dtype."""
        assert self.arena is not None
        self.worker.timed_run(wire.pack_slots([slot.index]), self._protocol.setup_deadline_s)
        self.worker.request(wire.COLLECT, b"", self._protocol.setup_deadline_s)
        return [self.arena.view(p).copy() for p in slot.outputs]

    def time(self, slot: Slot) -> float:
        """Outside seconds of one call on the slot's inputs."""
        return self.worker.timed_run(wire.pack_slots([slot.index]), self._protocol.setup_deadline_s)[0]

    def own_inputs(self, slot: Slot) -> list[np.ndarray[Any, Any]]:
        """The task file's own inputs for the slot's case, flat copies: for inputs of domain "fixed"."""
        assert self.arena is not None
        self.worker.request(wire.PREPARE, wire.pack_slots([slot.index]), self._protocol.setup_deadline_s)
        return [self.arena.view(p).copy() for p in slot.inputs]

    def truth(self, slot: Slot) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
        """The slot's outputs in fp64, flat."""
        assert self.arena is not None
        self.worker.request(wire.RUN64, wire.pack_slots([slot.index]), self._protocol.setup_deadline_s)
        return [self.arena.view(p).copy() for p in slot.wide]

    def close(self) -> None:
        self.worker.close()
        if self.arena is not None:
            self.arena.close()
