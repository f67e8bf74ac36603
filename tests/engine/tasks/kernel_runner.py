"""Runs built kernels against fp64 torch, one forked child each: `python kernel_runner.py ORDER.json`.

ORDER is a list of [task, task file, shared object]; the answer on stdout is a list of "ok", "wrong: ..." or "died".
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from workbench_engine.referee.tolerance import Expected, compare
from workbench_engine.tasks.loading import LoadedTask


def aligned(tensor: Any) -> Any:
    """A copy that starts at a multiple of 64 bytes."""
    size = tensor.element_size()
    space = torch.empty(tensor.numel() + 64 // size, dtype=tensor.dtype)
    start = -space.data_ptr() % 64 // size
    view = space[start : start + tensor.numel()].view(tensor.shape)
    view.copy_(tensor)
    return view


class Trial:
    """One case of one task on one set of inputs, with the truth."""

    def __init__(self, task: LoadedTask, case: str, scale: float) -> None:
        shapes = task.case(case)
        inputs = [x * scale for x in task.inputs_for(case)]
        self.case = f"{case} x {scale:g}"
        self.inputs = [aligned(x) for x in (*inputs, *task.state_arrays(case))]
        self.before = [x.clone() for x in self.inputs]
        y = task.run(case, inputs)[0]
        truth = task.run_fp64(case, inputs)[0]
        self.expected = Expected(y.numpy(), truth.numpy(), "float32", shapes.accumulate)
        self.output = aligned(torch.full_like(y, float("nan")))
        self.dims = (ctypes.c_longlong * len(shapes.dims))(*shapes.dims.values())

    def fails(self, run: Any) -> str:
        self.output.fill_(float("nan"))
        ins = (ctypes.c_void_p * len(self.inputs))(*[x.data_ptr() for x in self.inputs])
        outs = (ctypes.c_void_p * 1)(self.output.data_ptr())
        run(ins, outs, self.dims)
        if not all(torch.equal(a, b) for a, b in zip(self.inputs, self.before, strict=True)):
            return f"wrong: {self.case}: input modified"
        verdict = compare(self.output.numpy(), self.expected)
        return "" if verdict.ok else f"wrong: {self.case}: {verdict.detail}"


def judge(library: str, trials: list[Trial]) -> str:
    """Run in a child, so that a crash is an answer and loading has no effect on the others."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        run = ctypes.CDLL(library).kernel_run
        failure = next((f for t in trials if (f := t.fails(run))), "ok")
        os.write(write, failure.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return answer if status == 0 and answer else "died"


def main() -> None:
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    cached: dict[str, list[Trial]] = {}
    answers = []
    for name, path, library in json.loads(Path(sys.argv[1]).read_text()):
        if name not in cached:
            task = LoadedTask(Path(path).read_text(), path)
            cases = ["cpu", *(f"hidden-{i}" for i in range(len(task.task.hidden)))]
            cached[name] = [Trial(task, case, 1.0) for case in cases]
            cached[name] += [Trial(task, "hidden-1", scale) for scale in (300.0, 1e-3)]
        answers.append(judge(library, cached[name]))
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
