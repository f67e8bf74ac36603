"""Worker that holds a task's reference: describes the task, runs it, and runs it in fp64.

Task files come from others, so this runs in a cage as well; it shares nothing with any candidate.
Run as `python -I reference.py FD PACKAGES`, PACKAGES the folder that holds `workbench_engine`.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import sys
import time
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100,PTH120
sys.path.append(sys.argv[2])
import msgspec
import torch
import wire  # type: ignore[import-not-found,unused-ignore]
from views import tensors  # type: ignore[import-not-found,unused-ignore]

from workbench_engine.tasks.contract import TaskRejected
from workbench_engine.tasks.loading import LoadedTask


class Slot:
    def __init__(self, view: memoryview, entry: dict[str, Any]) -> None:
        self.case: str = entry["case"]
        self.inputs = tensors(view, entry["inputs"])
        self.state = tensors(view, entry["state"])
        self.outputs = tensors(view, entry["outputs"])
        self.wide = tensors(view, entry["wide"])


class Reference:
    """The loaded task and, once set up, its slots."""

    def __init__(self, task: LoadedTask) -> None:
        self.task = task
        self.slots: list[Slot] = []
        self.results: list[tuple[Slot, list[torch.Tensor]]] = []
        self.calls: list[tuple[Any, list[Any], Slot]] = []

    def set_up(self, setup: dict[str, Any], arena_fd: int) -> None:
        os.sched_setaffinity(0, setup["cores"])
        torch.set_num_threads(setup["threads"])
        self.arena = mmap.mmap(arena_fd, setup["bytes"], mmap.MAP_SHARED | mmap.MAP_POPULATE)
        view = memoryview(self.arena)
        self.slots = [Slot(view, entry) for entry in setup["slots"]]
        self.calls = [(self.task.model_for(s.case), self.task.arguments(s.case, s.inputs), s) for s in self.slots]
        for slot in {s.case: s for s in self.slots}.values():
            for place, value in zip(slot.state, self.task.state_arrays(slot.case), strict=True):
                place.copy_(value)

    def set_state(self) -> None:
        for slot in {s.case: s for s in self.slots}.values():
            if slot.state:
                self.task.set_state(slot.case, [t.clone() for t in slot.state])

    def run(self, slots: list[int]) -> int:
        # The same few steps as in the candidate's worker: what differs here would be a bias of the clock.
        chosen = [self.calls[i] for i in slots]
        self.results = []
        results = []
        start = time.perf_counter_ns()
        for model, inputs, _ in chosen:
            results.append(model(*inputs))
        spent = time.perf_counter_ns() - start
        self.results = [
            (c[2], list(r) if isinstance(r, (tuple, list)) else [r]) for r, c in zip(results, chosen, strict=True)
        ]
        return spent

    def collect(self) -> None:
        for slot, results in self.results:
            for place, result in zip(slot.outputs, results, strict=True):
                place.copy_(result)

    def own_inputs(self, slots: list[int]) -> None:
        for slot in (self.slots[i] for i in slots):
            for place, value in zip(slot.inputs, self.task.inputs_for(slot.case), strict=True):
                place.copy_(value)

    def run_wide(self, slots: list[int]) -> None:
        for slot in (self.slots[i] for i in slots):
            for place, result in zip(slot.wide, self.task.run_fp64(slot.case, slot.inputs), strict=True):
                place.copy_(result)


def serve(channel: socket.socket) -> None:
    reference: Reference | None = None
    while True:
        kind, payload, fds = wire.receive(channel, 1)
        answer = b""
        if kind == wire.ESTIMATE:
            # What it needs of torch takes most of a second to import, which a run's reference has no use for.
            from workbench_engine.tasks.estimating import estimate

            request = json.loads(payload)
            try:
                answer = msgspec.json.encode(estimate(request["source"], request["path"]))
            except TaskRejected as rejection:
                wire.send(channel, wire.ERROR, str(rejection).encode())
                continue
        elif kind == wire.DESCRIBE:
            request = json.loads(payload)
            try:
                loaded = LoadedTask(request["source"], request["path"])
            except TaskRejected as rejection:
                wire.send(channel, wire.ERROR, str(rejection).encode())
                continue
            reference = Reference(loaded)
            inits = {name: repr(loaded.init_inputs(name)) for name in loaded.case_names()}
            answer = msgspec.json.encode({"task": loaded.task, "init": inits})
        elif reference is None:
            wire.send(channel, wire.OK)
            continue
        elif kind == wire.RUN:
            nonce, slots = wire.unpack_run(payload)
            wire.send(channel, wire.DONE, wire.CLAIM.pack(reference.run(slots), nonce))
            continue
        elif kind == wire.SETUP:
            reference.set_up(json.loads(payload), fds[0])
        elif kind == wire.SET_STATE:
            reference.set_state()
        elif kind == wire.COLLECT:
            reference.collect()
        elif kind == wire.MODE:
            reference.task.set_mode(payload == b"train")
        elif kind == wire.PREPARE:
            reference.own_inputs(wire.unpack_slots(payload))
        elif kind == wire.RUN64:
            reference.run_wide(wire.unpack_slots(payload))
        wire.send(channel, wire.OK, answer)


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    torch.set_num_threads(1)
    with torch.no_grad():
        while True:
            try:
                serve(channel)
            except wire.Closed:
                return
            except Exception as error:
                wire.send(channel, wire.ERROR, f"{type(error).__name__}: {error}"[:4000].encode())


if __name__ == "__main__":
    main()
