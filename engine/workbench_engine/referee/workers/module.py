"""Worker for `module` candidates: executes one Python file in a torch that is already imported, and calls `ModelNew`.

Like the kernel worker it knows nothing but inputs. What it says of types and shapes is feedback for honest people;
the judgement is made elsewhere from the bytes it returns. Run as `python -I module.py FD ENTRY LOCK`.
"""

from __future__ import annotations

import ast
import inspect
import json
import mmap
import os
import socket
import sys
import time
import traceback
import types
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100,PTH120
import chaining  # type: ignore[import-not-found,unused-ignore]
import locking  # type: ignore[import-not-found,unused-ignore]
import torch
import wire  # type: ignore[import-not-found,unused-ignore]
from guarding import Guard  # type: ignore[import-not-found,unused-ignore]
from views import tensors  # type: ignore[import-not-found,unused-ignore]

SOURCE_PATH = "/tmp/candidate.py"
SHIFT_PAGES = 8192


class Refused(Exception):
    """The candidate breaks the contract; the text goes back as feedback, `finding` where it means one."""

    def __init__(self, text: str, finding: str = "") -> None:
        super().__init__(text)
        self.finding = finding


class Module:
    """One model for each set of init arguments, with the state of its case loaded; a second one where asked for."""

    def __init__(self, setup: dict, arena_fd: int, entry: str, guard: Guard) -> None:  # type: ignore[type-arg]
        os.sched_setaffinity(0, setup["cores"])
        torch.set_num_threads(setup["threads"])
        torch.set_grad_enabled(False)
        self.arena = mmap.mmap(arena_fd, setup["bytes"], mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self.view = memoryview(self.arena)
        self.guard = guard
        guard.start()
        module = types.ModuleType("candidate")
        module.__file__ = SOURCE_PATH
        sys.modules["candidate"] = module
        source = setup["source"]
        with open(SOURCE_PATH, "w") as file:  # noqa: PTH123
            file.write(source)
        locking.lock(sys.argv[3])
        exec(compile(source, SOURCE_PATH, "exec"), module.__dict__)
        model_class = getattr(module, entry, None)
        if not inspect.isclass(model_class):
            raise Refused(f"the file defines no class {entry}")
        self.model_class: type = model_class
        self.train = setup.get("mode") == "train"
        self.table = setup["slots"]
        self.models: dict = {}  # type: ignore[type-arg]
        self.seconds: dict = {}  # type: ignore[type-arg]
        self.slots = []
        for slot in self.table:
            case = slot["case"]
            if case not in self.models:
                self.models[case] = self._build(slot)
            self.slots.append((case, tensors(self.view, slot["inputs"]), tensors(self.view, slot["outputs"])))
        self.results: list = []  # type: ignore[type-arg]
        self.pad: torch.Tensor | None = None

    def _build(self, slot: dict):  # type: ignore[no-untyped-def,type-arg]
        torch.manual_seed(slot["init_seed"])
        model = self.model_class(*ast.literal_eval(slot["init"]))
        if hasattr(model, "train"):
            model.train(self.train)
        self._load_state(model, slot)
        return model

    def _load_state(self, model, slot: dict) -> None:  # type: ignore[no-untyped-def,type-arg]
        state = tensors(self.view, slot["state"])
        if not state:
            return
        own = model.state_dict()
        given = dict(zip(slot["state_names"], state, strict=True))
        missing = sorted(set(given) - set(own))
        if missing:
            raise Refused(f"{type(model).__name__} lacks the state {', '.join(missing[:4])} of the reference")
        model.load_state_dict({**own, **{k: v.clone() for k, v in given.items()}})

    def set_state(self) -> None:
        """Load what the arena holds now into the first instances, as a user's load_state_dict would."""
        for slot in {s["case"]: s for s in self.table}.values():
            self._load_state(self.models[slot["case"]], slot)

    def second_instance(self, index: int) -> None:
        """Build another model for the case of slot `index`, with the state that the arena holds now."""
        slot = self.table[index]
        self.seconds[slot["case"]] = self._build(slot)
        self._prepare(self.seconds[slot["case"]], slot)

    def set_mode(self, train: bool) -> None:
        for model in (*self.models.values(), *self.seconds.values()):
            model.train(train)

    def prepare(self) -> None:
        """The declared untimed phase: once a case, with the shapes of the inputs and no contents."""
        for slot in {s["case"]: s for s in self.table}.values():
            self._prepare(self.models[slot["case"]], slot)

    def _prepare(self, model, slot: dict) -> None:  # type: ignore[no-untyped-def,type-arg]
        prepare = getattr(model, "prepare", None)
        if prepare is not None and not isinstance(prepare, torch.nn.Module):
            prepare([tuple(place[3]) for place in slot["inputs"]])

    def call_of(self, index: int):  # type: ignore[no-untyped-def]
        case, inputs, places = self.slots[index & ~wire.SECOND]
        return (self.seconds if index & wire.SECOND else self.models)[case], inputs, places

    def run(self, slots: list[int]) -> int:
        chosen = [self.call_of(i) for i in slots]
        self.results = []
        results = []
        start = time.perf_counter_ns()
        for model, inputs, _ in chosen:
            results.append(model(*inputs))
        spent = time.perf_counter_ns() - start
        self.results = [(r, c[2]) for r, c in zip(results, chosen, strict=True)]
        return spent

    def chain(self, request: dict) -> list[int]:  # type: ignore[type-arg]
        digest: int = request["seed"]
        digests = []
        for index in request["slots"]:
            entry = self.table[index]
            chaining.disturb(self.view, [entry["inputs"][i] for i in request["swap"]], digest)
            model, inputs, places = self.call_of(index)
            self.results = [(model(*inputs), places)]
            self.collect()
            digest = chaining.digest_of(self.view, entry["outputs"], digest)
            digests.append(digest)
        self.results = []
        return digests

    def shift(self) -> None:
        """Let the next calls' temporaries fall on other pages of the heap.

        Where a process's pages lie in the caches is luck that would last its whole life, and measured as a difference
        of several per cent between two copies of the same code. Shifted before every block it averages out.
        """
        self.results = []
        self.pad = None
        self.pad = torch.empty(4096 * (int.from_bytes(os.urandom(2), "little") % SHIFT_PAGES), dtype=torch.uint8)

    def collect(self) -> None:
        for result, places in self.results:
            parts = parts_of(result)
            if len(parts) != len(places):
                raise Refused(f"returned {len(parts)} outputs where the reference returns {len(places)}")
            for index, (part, place) in enumerate(zip(parts, places, strict=True)):
                check_output(index, part, place)
                COPY(place, part)


COPY, POINTER, STORAGE = torch.Tensor.copy_, torch.Tensor.data_ptr, torch.Tensor.untyped_storage
"""Taken before any candidate's code runs."""


RETURN_TYPES = frozenset(v for v in vars(torch.return_types).values() if isinstance(v, type))
"""What torch's own functions with several results return; any other class could compute when it is looked into."""


def parts_of(result: Any) -> tuple[Any, ...]:
    """The outputs of a call. A sequence of a class of its own could compute when it is looked into."""
    kind = type(result)
    if kind is tuple or kind is list or kind in RETURN_TYPES:
        return tuple(result)
    if isinstance(result, (tuple, list)):
        raise Refused(f"returned a {kind.__name__}, not exactly a tuple or list", "not-a-tensor")
    return (result,)


def check_output(index: int, part, place: torch.Tensor) -> None:  # type: ignore[no-untyped-def]
    """Exactly a tensor, with storage of its own, of the right dtype and shape. Raises Refused."""
    kind = type(part)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        pretends = isinstance(part, torch.Tensor)
        raise Refused(f"output {index} is a {kind.__name__}, not a torch.Tensor", "not-a-tensor" if pretends else "")
    if part.dtype != place.dtype:
        raise Refused(f"output {index} has dtype {part.dtype}, the reference {place.dtype}")
    if tuple(part.shape) != tuple(place.shape):
        raise Refused(f"output {index} has shape {tuple(part.shape)}, the reference {tuple(place.shape)}")
    if part.device.type != "cpu" or part.layout != torch.strided:
        raise Refused(f"output {index} is on {part.device} with layout {part.layout}")
    if part.numel() and (POINTER(part) == 0 or STORAGE(part).nbytes() == 0):
        raise Refused(f"output {index} has no storage", "not-a-tensor")


def short(error: BaseException) -> str:
    """The innermost frame of the candidate's own file and the message."""
    lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == SOURCE_PATH]
    where = f" (line {lines[-1].lineno}: {lines[-1].line})" if lines else ""
    return f"{type(error).__name__}: {error}{where}"[:2000]


def answer(module: Module, kind: int, payload: bytes) -> bytes:
    """One request other than a timed call."""
    if kind == wire.SHIFT:
        module.shift()
    elif kind == wire.COLLECT:
        module.collect()
    elif kind == wire.PREPARE:
        module.prepare()
    elif kind == wire.SET_STATE:
        module.set_state()
    elif kind == wire.INSTANCE:
        module.second_instance(wire.unpack_slots(payload)[0])
    elif kind == wire.MODE:
        module.set_mode(payload == b"train")
    elif kind == wire.CHAIN:
        return json.dumps(module.chain(json.loads(payload))).encode()
    elif kind == wire.PROFILE:
        # torch.profiler is slow to import, and most candidates are never profiled.
        import profiling  # type: ignore[import-not-found,unused-ignore]

        model, inputs, _ = module.call_of(wire.unpack_slots(payload)[0])
        return json.dumps(profiling.profile(lambda: model(*inputs))).encode()
    elif kind == wire.GUARD:
        return json.dumps(module.guard.differences()).encode()
    return b""


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    entry = sys.argv[2] if len(sys.argv) > 2 else "ModelNew"
    guard = Guard(sys.modules[__name__])
    module: Module | None = None
    while True:
        try:
            kind, payload, fds = wire.receive(channel, 2 if module is None else 0)
        except wire.Closed:
            return
        try:
            if kind == wire.RUN:
                nonce, slots = wire.unpack_run(payload)
                spent = module.run(slots) if module is not None else 0
                wire.send(channel, wire.DONE, wire.CLAIM.pack(spent, nonce))
            elif kind == wire.SETUP:
                module = Module(json.loads(payload), fds[0], entry, guard)
                wire.send(channel, wire.OK)
            else:
                wire.send(channel, wire.OK, answer(module, kind, payload) if module is not None else b"")
        except wire.Closed:
            return
        except Refused as refusal:
            wire.send(channel, wire.ERROR, wire.error(str(refusal), refusal.finding))
        except BaseException as error:
            if isinstance(error, (SystemExit, KeyboardInterrupt)):
                wire.send(channel, wire.ERROR, f"the candidate raised {type(error).__name__}".encode())
            else:
                wire.send(channel, wire.ERROR, short(error).encode())


if __name__ == "__main__":
    main()
