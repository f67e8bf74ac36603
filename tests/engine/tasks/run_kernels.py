"""Builds rendered kernels and checks them against a task's fp64 reference; a process of its own, since kernels crash.

Reads JSON from standard input: {"task", "points": [indices, ...]}; writes a JSON list of "ok", "build: ..." or
"wrong: ...". Only the tests' own small judge, far from the referee's: relative error over the whole output.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from workbench_engine.tasks.catalogue import bundled_path, bundled_space
from workbench_engine.tasks.contract import ShapeCase
from workbench_engine.tasks.design import Kernel
from workbench_engine.tasks.loading import LoadedTask


def build(kernel: Kernel, folder: Path) -> Path | str:
    """The shared object, or the compiler's first error."""
    source, shared = folder / "kernel.cpp", folder / "kernel.so"
    source.write_text(kernel.source)
    compile_only = ["g++", "-march=native", "-fopenmp", "-fPIC", *kernel.flags, "-c", str(source), "-o", f"{shared}.o"]
    for command in (compile_only, ["g++", "-shared", "-fopenmp", f"{shared}.o", "-o", str(shared)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            return (errors or [done.stderr])[0]
    return shared


def outputs_of(shared: Path, case: ShapeCase, tensors: list[Any]) -> list[Any]:
    """One call with outputs poisoned with NaN."""
    outs = [torch.full(t.shape, float("nan")) for t in case.of("output")]
    pointers = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
    results = (ctypes.c_void_p * len(outs))(*[t.data_ptr() for t in outs])
    dims = (ctypes.c_longlong * len(case.dims))(*case.dims.values())
    ctypes.CDLL(str(shared)).kernel_run(pointers, results, dims)
    return outs


class Judge:
    """Inputs, moved state and fp64 answers of the cpu case and every hidden shape."""

    def __init__(self, name: str) -> None:
        path = bundled_path(name)
        loaded = LoadedTask(path.read_text(), str(path))
        self.sets = []
        for case in (loaded.task.cases["cpu"], *loaded.task.hidden):
            torch.manual_seed(11)
            inputs = loaded.inputs_for(case.name, seed=7)
            state = [
                s + 0.1 * torch.randn_like(s) if s.is_floating_point() else s for s in loaded.state_arrays(case.name)
            ]
            loaded.set_state(case.name, state)
            truth, low = loaded.run_fp64(case.name, inputs), loaded.run(case.name, inputs)
            self.sets.append((case, [*inputs, *state], truth, low))

    def verdict(self, kernel: Kernel) -> str:
        with tempfile.TemporaryDirectory() as folder:
            shared = build(kernel, Path(folder))
            if isinstance(shared, str):
                return f"build: {shared}"
            for case, tensors, truth, low in self.sets:
                kept = [t.clone() for t in tensors]
                for y, t, r in zip(outputs_of(shared, case, tensors), truth, low, strict=True):
                    limit = max(3 * relative(r, t), 6e-8 * max(case.accumulate, 4) ** 0.5)
                    error = relative(y, t)
                    if not error <= limit:
                        return f"wrong: {case.name}: error {error:.2g}, allowed {limit:.2g}"
                if not all(torch.equal(a, b) for a, b in zip(tensors, kept, strict=True)):
                    return f"wrong: {case.name}: writes its inputs"
        return "ok"


def relative(y: Any, truth: Any) -> float:
    return float((y.double() - truth).norm() / truth.norm())


def main() -> None:
    torch.set_num_threads(1)
    request = json.loads(sys.stdin.read())
    space, judge = bundled_space(request["task"]), Judge(request["task"])
    assert space is not None
    print(json.dumps([judge.verdict(space.render(space.decode(tuple(p)))) for p in request["points"]]))


if __name__ == "__main__":
    main()
