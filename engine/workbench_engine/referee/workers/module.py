"""Worker for `module` candidates: executes one Python file in a torch that is already imported, and calls `ModelNew`.

Like the kernel worker it knows nothing but inputs. What it says of types and shapes is feedback for honest people;
the judgement is made elsewhere from the bytes it returns. Run as `python -I module.py FD`.
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

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100,PTH120
import torch
import wire  # type: ignore[import-not-found,unused-ignore]
from views import tensors  # type: ignore[import-not-found,unused-ignore]

SOURCE_PATH = "/tmp/candidate.py"
SHIFT_PAGES = 8192


class Refused(Exception):
    """The candidate breaks the contract; the text goes back as feedback."""


class Module:
    """One model for each set of init arguments, with the state of its case loaded."""

    def __init__(self, setup: dict, arena_fd: int, entry: str) -> None:  # type: ignore[type-arg]
        os.sched_setaffinity(0, setup["cores"])
        torch.set_num_threads(setup["threads"])
        torch.set_grad_enabled(False)
        self.arena = mmap.mmap(arena_fd, setup["bytes"], mmap.MAP_SHARED | mmap.MAP_POPULATE)
        view = memoryview(self.arena)
        module = types.ModuleType("candidate")
        module.__file__ = SOURCE_PATH
        sys.modules["candidate"] = module
        source = setup["source"]
        with open(SOURCE_PATH, "w") as file:  # noqa: PTH123
            file.write(source)
        exec(compile(source, SOURCE_PATH, "exec"), module.__dict__)
        model_class = getattr(module, entry, None)
        if not inspect.isclass(model_class):
            raise Refused(f"the file defines no class {entry}")
        self.slots = []
        models: dict = {}  # type: ignore[type-arg]
        for slot in setup["slots"]:
            case = slot["case"]
            if case not in models:
                models[case] = self._build(model_class, slot, view)
            self.slots.append((models[case], tensors(view, slot["inputs"]), tensors(view, slot["outputs"])))
        self.results: list = []  # type: ignore[type-arg]
        self.pad: torch.Tensor | None = None

    def _build(self, model_class: type, slot: dict, view: memoryview):  # type: ignore[no-untyped-def,type-arg]
        torch.manual_seed(slot["init_seed"])
        model = model_class(*ast.literal_eval(slot["init"]))
        if hasattr(model, "eval"):
            model.eval()
        state = tensors(view, slot["state"])
        if state:
            own = model.state_dict()
            given = dict(zip(slot["state_names"], state, strict=True))
            missing = sorted(set(given) - set(own))
            if missing:
                raise Refused(f"{model_class.__name__} lacks the state {', '.join(missing[:4])} of the reference")
            model.load_state_dict({**own, **{k: v.clone() for k, v in given.items()}})
        return model

    def run(self, slots: list[int]) -> int:
        chosen = [self.slots[i] for i in slots]
        self.results = []
        results = []
        start = time.perf_counter_ns()
        for model, inputs, _ in chosen:
            results.append(model(*inputs))
        spent = time.perf_counter_ns() - start
        self.results = [(r, c[2]) for r, c in zip(results, chosen, strict=True)]
        return spent

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
            parts = result if isinstance(result, (tuple, list)) else (result,)
            if len(parts) != len(places):
                raise Refused(f"returned {len(parts)} outputs where the reference returns {len(places)}")
            for index, (part, place) in enumerate(zip(parts, places, strict=True)):
                if type(part) is not torch.Tensor and type(part) is not torch.nn.Parameter:
                    raise Refused(f"output {index} is a {type(part).__name__}, not a torch.Tensor")
                if part.dtype != place.dtype:
                    raise Refused(f"output {index} has dtype {part.dtype}, the reference {place.dtype}")
                if tuple(part.shape) != tuple(place.shape):
                    raise Refused(f"output {index} has shape {tuple(part.shape)}, the reference {tuple(place.shape)}")
                if part.device.type != "cpu" or part.layout != torch.strided:
                    raise Refused(f"output {index} is on {part.device} with layout {part.layout}")
                place.copy_(part)


def short(error: BaseException) -> str:
    """The innermost frame of the candidate's own file and the message."""
    lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == SOURCE_PATH]
    where = f" (line {lines[-1].lineno}: {lines[-1].line})" if lines else ""
    return f"{type(error).__name__}: {error}{where}"[:2000]


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    entry = sys.argv[2] if len(sys.argv) > 2 else "ModelNew"
    module: Module | None = None
    while True:
        try:
            kind, payload, fds = wire.receive(channel, 2 if module is None else 0)
        except wire.Closed:
            return
        try:
            if kind == wire.RUN and module is not None:
                wire.send(channel, wire.DONE, wire.CLAIM.pack(module.run(wire.unpack_slots(payload))))
            elif kind == wire.SETUP:
                module = Module(json.loads(payload), fds[0], entry)
                wire.send(channel, wire.OK)
            elif kind == wire.SHIFT and module is not None:
                module.shift()
                wire.send(channel, wire.OK)
            elif kind == wire.COLLECT and module is not None:
                module.collect()
                wire.send(channel, wire.OK)
            else:
                wire.send(channel, wire.OK)
        except wire.Closed:
            return
        except Refused as refusal:
            wire.send(channel, wire.ERROR, str(refusal).encode())
        except BaseException as error:
            if isinstance(error, (SystemExit, KeyboardInterrupt)):
                wire.send(channel, wire.ERROR, f"the candidate raised {type(error).__name__}".encode())
            else:
                wire.send(channel, wire.ERROR, short(error).encode())


if __name__ == "__main__":
    main()
