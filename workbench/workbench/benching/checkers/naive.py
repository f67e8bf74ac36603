"""A naive check, as many benchmarks have it: reference and candidate in one process, one clock, no suspicion.

Five seeded trials with `allclose(1e-2, 1e-2)`, reference first, both models in evaluation mode and built from the same
seed; then the mean of 20 rounds on one set of inputs. Exit status 0 means "correct". Prints one JSON line.

Run as `python naive.py TASK.py CANDIDATE [KERNEL.so]`.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

TRIALS = 5
ROUNDS = 20
TOLERANCE = 1e-2


def main() -> None:
    task, candidate = Path(sys.argv[1]), Path(sys.argv[2])
    context: dict[str, Any] = {"__name__": "task"}
    exec(compile(task.read_text(), "task.py", "exec"), context)
    cases = context.get("CASES", {"default": {}})
    dims = cases.get("cpu") or next(iter(cases.values()))
    get_inputs, model_class = context["get_inputs"], context["Model"]
    arguments = called(context["get_init_inputs"], dims)
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    torch.manual_seed(42)
    model = model_class(*arguments).eval()
    if candidate.suffix == ".cpp":
        new = kernel(sys.argv[3], model, list(dims.values()))
    else:
        exec(compile(candidate.read_text(), "candidate.py", "exec"), context)
        torch.manual_seed(42)
        new = context["ModelNew"](*arguments)
        if hasattr(new, "eval"):
            new = new.eval()
    inputs = []
    for trial in range(TRIALS):
        torch.manual_seed(42 + trial)
        inputs.append(called(get_inputs, dims))
    for values in inputs:
        expected = clones(model(*values))
        got = listed(new(*values))
        if len(got) != len(expected):
            wrong()
        for one, other in zip(got, expected, strict=True):
            if one.shape != other.shape or not torch.allclose(one, other, atol=TOLERANCE, rtol=TOLERANCE):
                wrong()
    values = inputs[0]
    spent = [mean_time(new, values), mean_time(model, values)]
    print(json.dumps({"speedup": spent[1] / max(spent[0], 1e-9)}))


def called(function: Any, dims: dict[str, int]) -> list[Any]:
    named = inspect.signature(function).parameters
    return list(function(**{k: v for k, v in dims.items() if k in named}))


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def clones(result: Any) -> list[Any]:
    """Copies, the originals freed: where a candidate's uninitialised memory comes from."""
    return [one.clone() for one in listed(result)]


def mean_time(call: Any, values: list[Any]) -> float:
    for _ in range(3):
        call(*values)
    start = time.perf_counter()
    for _ in range(ROUNDS):
        call(*values)
    return (time.perf_counter() - start) / ROUNDS


def kernel(library: str, model: Any, dims: list[int]) -> Any:
    """The compiled function behind a call that makes the outputs, as a binding would."""
    loaded = ctypes.CDLL(library)
    sizes = (ctypes.c_longlong * max(1, len(dims)))(*dims)
    if hasattr(loaded, "kernel_prepare"):
        loaded.kernel_prepare(sizes)
    state = [value.contiguous() for value in model.state_dict().values()]

    def call(*values: Any) -> Any:
        outputs = [torch.empty_like(one) for one in shapes(model, values)]
        tensors = [v for v in values if isinstance(v, torch.Tensor)]
        given = (ctypes.c_void_p * (len(tensors) + len(state)))(*(t.data_ptr() for t in (*tensors, *state)))
        made = (ctypes.c_void_p * len(outputs))(*(t.data_ptr() for t in outputs))
        loaded.kernel_run(given, made, sizes)
        return outputs

    return call


_SHAPES: list[Any] = []


def shapes(model: Any, values: Any) -> list[Any]:
    """Empty tensors like the outputs, worked out once."""
    if not _SHAPES:
        _SHAPES.extend(one.clone() for one in listed(model(*values)))
    return _SHAPES


def wrong() -> None:
    print(json.dumps({"speedup": None}))
    sys.stdout.flush()
    sys.exit(1)


if __name__ == "__main__":
    main()
