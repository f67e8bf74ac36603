"""How much faster than eager torch a bundled task's design space can be: random points and one point chosen by hand.

Run as a script: `python tests/benchmarks/tasks_ceiling.py [--random K] [--seed S] [TASK ...]`. One thread, reference
and kernel interleaved, minima; wrong kernels are not timed. Prints one line a task: naive, chosen, best of K random
points, and how many of those were right. No verdicts: the referee's are the ones that count.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "engine" / "tasks"))

# Without these every large output is mapped and faulted in afresh, which would be what is measured.
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}

Choice = dict[str, str | int]
VECTORS: Choice = {"opt": "-O3", "exp": "poly5_flush", "exp_vector": "vec16"}
ROWS: Choice = {"opt": "-O3", "write_vector": "vec16", "write_steps": 2}
CHOSEN: dict[str, Choice] = {
    "softmax_rows": {
        **VECTORS,
        "algorithm": "in_scratch",
        "normalise": "multiply",
        "max_vector": "vec16",
        "max_steps": 8,
        "exp_steps": 2,
        "store": "stream",
    },
    "layernorm": {**ROWS, "moments": "pivot", "moment_vector": "vec16", "moment_steps": 8, "store": "stream"},
    "rmsnorm": {**ROWS, "fusion": "fused", "sum_vector": "vec16", "sum_steps": 8},
    "bias_gelu_scale": {
        "opt": "-O3",
        "exp": "poly5_flush",
        "gelu": "cdf",
        "erf": "erfcx",
        "fusion": "fused",
        "vector": "vec16",
        "steps": 2,
        "math_flags": "fast",
    },
    "cross_entropy": {**VECTORS, "shift": "maximum", "max_vector": "vec16", "max_steps": 8, "exp_steps": 2},
    "attention_short": {
        **VECTORS,
        "scores": "outer",
        "normalise": "output",
        "query_block": 8,
        "score_vector": "vec16",
        "score_steps": 2,
        "value_vector": "vec16",
        "value_steps": 2,
        "value_block": 8,
    },
}


def speedup(loaded: Any, shared: Path, judge: Any, repeats: int) -> tuple[float, float]:
    """(speedup, eager ms) on the cpu case; outputs are allocated inside both timed regions."""
    import torch

    case, tensors, _, _ = judge.sets[0]
    model, inputs = loaded.model_for("cpu"), tensors[: len(case.of("input"))]
    kernel = ctypes.CDLL(str(shared)).kernel_run
    pointers = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
    dims = (ctypes.c_longlong * len(case.dims))(*case.dims.values())
    eager = ours = float("inf")
    with torch.no_grad():
        for _ in range(repeats):
            start = time.perf_counter()
            model(*inputs)
            middle = time.perf_counter()
            outs = [torch.empty(t.shape) for t in case.of("output")]
            kernel(pointers, (ctypes.c_void_p * len(outs))(*[t.data_ptr() for t in outs]), dims)
            eager, ours = min(eager, middle - start), min(ours, time.perf_counter() - middle)
    return eager / ours, eager * 1e3


def measure(name: str, count: int, seed: int) -> None:
    import run_kernels  # type: ignore[import-not-found,unused-ignore]

    from workbench_engine.tasks.catalogue import bundled_path, bundled_space
    from workbench_engine.tasks.loading import LoadedTask

    space, judge = bundled_space(name), run_kernels.Judge(name)
    assert space is not None
    loaded = LoadedTask(bundled_path(name).read_text(), str(bundled_path(name)))

    def one(point: Any, repeats: int = 15) -> tuple[float | None, float]:
        kernel = space.render(point)
        if judge.verdict(kernel) != "ok":
            return None, 0.0
        with tempfile.TemporaryDirectory() as folder:
            return speedup(loaded, run_kernels.build(kernel, Path(folder)), judge, repeats)

    naive, eager_ms = one(space.naive, 5)
    parts = [f"eager {eager_ms:.2f} ms", f"naive {naive or 0:.2f}x"]
    if name in CHOSEN:
        chosen, _ = one(space.point({**space.naive.values, **CHOSEN[name]}), 40)
        parts.append(f"chosen {chosen:.2f}x" if chosen else "chosen is wrong")
    if count:
        rng = random.Random(seed)
        found = [ratio for ratio in (one(space.sample(rng))[0] for _ in range(count)) if ratio]
        parts.append(f"best of {count} random {max(found, default=0):.2f}x ({len(found)} right)")
    print(f"{name:18s} {space.size:.1e} points  " + "  ".join(parts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=[])
    parser.add_argument("--random", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in SETTINGS.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SETTINGS})
    import torch

    torch.set_num_threads(1)
    for name in chosen.tasks or CHOSEN:
        measure(name, chosen.random, chosen.seed)


if __name__ == "__main__":
    main()
