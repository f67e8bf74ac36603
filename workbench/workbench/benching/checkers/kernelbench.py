"""KernelBench's own check of one file: its static checker, and its correctness evaluation on a CPU.

Called as they are: `validate_kernel_static(code, backend="cpu", precision="fp32")` (an unknown backend: only the
rule "must contain CUDA" stays out) and `run_and_check_correctness(..., num_correct_trials=5, device=cpu, fp32)` after
the same loading steps as `eval_kernel_against_ref`, which itself refuses to start without a GPU. Two things stand in
for what a CPU lacks: `torch.cuda.synchronize` does nothing, and `requests`, imported but not used here, is an empty
module where it is not installed. Its timing needs a GPU and is not run.

Run as `python kernelbench.py SRC TASK.py CANDIDATE.py`, SRC the folder `src` of its repository. Prints one JSON line.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any

TRIALS = 5
SEED = 42


def main() -> None:
    source, task, candidate = sys.argv[1], Path(sys.argv[2]).read_text(), Path(sys.argv[3]).read_text()
    sys.path.insert(0, source)
    for absent in ("requests", "datasets", "tomli", "dotenv"):
        if importlib.util.find_spec(absent) is None:
            sys.modules[absent] = types.ModuleType(absent)
    static = importlib.import_module("kernelbench.kernel_static_checker")
    _, errors, warnings = static.validate_kernel_static(candidate, backend="cpu", precision="fp32")
    said: dict[str, Any] = {"errors": errors, "warnings": warnings, "correct": None, "note": ""}
    # Said at once: the candidate may end the process below.
    print(json.dumps(said), flush=True)
    try:
        said["correct"], said["note"] = correctness(task, candidate)
    except Exception as error:
        said["note"] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps(said), flush=True)


def correctness(task: str, candidate: str) -> tuple[bool | None, str]:
    """(what its check says, a note). The steps of `eval_kernel_against_ref` for its default backend."""
    import torch

    evaluation = importlib.import_module("kernelbench.eval")
    torch.cuda.synchronize = lambda device=None: None
    device, precision = torch.device("cpu"), torch.float32
    context: dict[str, Any] = {}
    model, get_init_inputs, get_inputs = evaluation.load_original_model_and_inputs(task, context)
    evaluation.set_seed(SEED)
    arguments = [evaluation._process_input_tensor(x, device, "cuda", precision) for x in get_init_inputs()]
    with torch.no_grad():
        evaluation.set_seed(SEED)
        original = model(*arguments)
    try:
        model_new = evaluation.load_custom_model(candidate, context, None)
    except Exception as error:
        return False, f"does not load: {type(error).__name__}: {error}"[:300]
    if model_new is None:
        return False, "does not load"
    with torch.no_grad():
        evaluation.set_seed(SEED)
        custom = model_new(*arguments)
        original, custom = original.to(device=device, dtype=precision), custom.to(device=device, dtype=precision)
    result = evaluation.run_and_check_correctness(
        original,
        custom,
        get_inputs,
        metadata={},
        num_correct_trials=TRIALS,
        seed=SEED,
        device=device,
        backend="cuda",
        precision=precision,
    )
    return bool(result.correctness), str(result.metadata.get("correctness_trials", ""))


if __name__ == "__main__":
    main()
