"""KernelBench's own check of one file: its static checker, and its correctness evaluation on a CPU.

Called as they are: `validate_kernel_static(code, backend="cpu", precision="fp32")` (an unknown backend: only the
rule "must contain CUDA" stays out) and `run_and_check_correctness(..., num_correct_trials=5, device=cpu, fp32)` after
the same loading steps as `eval_kernel_against_ref`, which itself refuses to start without a GPU. Two things stand in
for what is absent: `torch.cuda.synchronize` does nothing, and packages that its modules import at their head but that
are not installed here (clients of language models, data sets) are empty until its modules are loaded. Its timing needs
a GPU and is not run.

Run as `python kernelbench.py SRC TASK.py CANDIDATE.py`, SRC the folder `src` of its repository. Prints one JSON line.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TRIALS = 5
SEED = 42


class Empty(types.ModuleType):
    """A package that is not installed: whatever is taken from it is a class that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last: makes an `Empty` of what nobody else finds."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return None if name.startswith("kernelbench") else importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        return None


def load() -> tuple[Any, Any]:
    """Its static checker and its evaluation; stand-ins do not outlive the import (a candidate must not meet them)."""
    importlib.import_module("torch")
    known = set(sys.modules)
    absent = Absent()
    sys.meta_path.append(absent)
    try:
        found = tuple(importlib.import_module(f"kernelbench.{name}") for name in ("kernel_static_checker", "eval"))
    finally:
        sys.meta_path.remove(absent)
        for name in set(sys.modules) - known:
            if isinstance(sys.modules[name], Empty):
                del sys.modules[name]
    return found[0], found[1]


def main() -> None:
    source, task, candidate = sys.argv[1], Path(sys.argv[2]).read_text(), Path(sys.argv[3]).read_text()
    sys.path.insert(0, source)
    static, evaluation = load()
    _, errors, warnings = static.validate_kernel_static(candidate, backend="cpu", precision="fp32")
    said: dict[str, Any] = {"errors": errors, "warnings": warnings, "correct": None, "note": ""}
    # Said at once: the candidate may end the process below.
    print(json.dumps(said), flush=True)
    try:
        said["correct"], said["note"] = correctness(evaluation, task, candidate)
    except Exception as error:
        said["note"] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps(said), flush=True)


def correctness(evaluation: Any, task: str, candidate: str) -> tuple[bool | None, str]:
    """(what its check says, a note). The steps of `eval_kernel_against_ref` for its default backend."""
    import torch

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
