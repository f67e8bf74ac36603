"""A task file, executed: the contract checked, its functions called with the dims that they name.

Runs only inside a sandboxed reference worker: executing the file is executing somebody else's code. Imports torch.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from workbench_engine.tasks.contract import TaskRejected

INIT_SEED = 42
"""Seed before `get_init_inputs` and before the model is built, as KernelBench does."""


class TaskFile:
    """The executed file. `cases` and `hidden` are its named dims; a plain KernelBench file has {"default": {}}."""

    def __init__(self, source: str, path: str) -> None:
        """Raises TaskRejected with one line: what, where, what to do."""
        self.source = source
        self.path = path
        self._module = self._execute()
        self._check_contract()
        self.cases = self._dims_table()
        self.hidden = self._hidden_dims()

    @property
    def name(self) -> str:
        """The file's stem; for a file called reference.py its folder."""
        path = Path(self.path)
        return path.parent.name if path.stem == "reference" and path.parent.name else path.stem

    @property
    def title(self) -> str:
        """First line of the file's docstring, else its name."""
        doc = (self._module.__doc__ or "").strip().splitlines()
        return doc[0].rstrip(".") if doc else self.name

    def optional(self, name: str, default: Any) -> Any:
        """A module-level name of the file, or `default`."""
        return getattr(self._module, name, default)

    def choice(self, name: str, known: tuple[str, ...]) -> str:
        """A module-level name that must be one of `known`; the first of them where the file has none."""
        value = self.optional(name, known[0])
        if value not in known:
            raise self.reject(f"{name} = {value!r} is unknown; it may be {', '.join(known)}")
        return str(value)

    def reject(self, what: str) -> TaskRejected:
        """The exception to raise for a defect of this file."""
        return TaskRejected(f"{self.path}: {what}")

    def call(self, function: Callable[..., Any], dims: Mapping[str, int], label: str) -> Any:
        """`function` with those dims that its signature names. An exception becomes a TaskRejected with the line."""
        parameters = inspect.signature(function).parameters
        whole = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        chosen = {k: v for k, v in dims.items() if whole or k in parameters}
        shown = ", ".join(f"{k}={v}" for k, v in chosen.items())
        return self.guarded(lambda: function(**chosen), f"{label}({shown})")

    def guarded(self, action: Callable[[], Any], label: str) -> Any:
        """`action()`; what it raises becomes a TaskRejected that names the task file's own line."""
        try:
            return action()
        except TaskRejected:
            raise
        except (Exception, SystemExit) as error:
            line = self._line_of(error)
            where = f" (line {line})" if line else ""
            raise self.reject(f"{label} raised {_short(error)}{where}") from error

    def inputs(self, dims: Mapping[str, int], seed: int) -> list[Any]:
        """`get_inputs` after seeding. Not all entries need be tensors."""
        torch.manual_seed(seed)
        values = self.call(self._module.get_inputs, dims, "get_inputs")
        if not isinstance(values, (list, tuple)):
            raise self.reject(f"get_inputs returned {type(values).__name__}, not a list of tensors")
        if not any(isinstance(v, torch.Tensor) for v in values):
            raise self.reject("get_inputs returned no tensor; a task needs at least one tensor input")
        return [v.detach().contiguous() if isinstance(v, torch.Tensor) else v for v in values]

    def init_inputs(self, dims: Mapping[str, int]) -> list[Any]:
        """`get_init_inputs` after seeding: positional arguments of Model."""
        torch.manual_seed(INIT_SEED)
        arguments = self.call(self._module.get_init_inputs, dims, "get_init_inputs")
        if not isinstance(arguments, (list, tuple)):
            raise self.reject(f"get_init_inputs returned {type(arguments).__name__}, not a list")
        return list(arguments)

    def model(self, dims: Mapping[str, int]) -> Any:
        """`Model(*get_init_inputs())` after seeding, in the mode the file declares, without gradients."""
        arguments = self.init_inputs(dims)
        model = self.guarded(lambda: self._module.Model(*arguments), "Model()")
        return model.train(self.mode == "train").requires_grad_(False)

    @property
    def mode(self) -> str:
        """How the model runs: "eval", "train", or "both" (eval first)."""
        return self.choice("MODE", ("eval", "train", "both"))

    def cost(self, dims: Mapping[str, int]) -> dict[str, int]:
        """What `cost` says: {"bytes", "flops"}; empty when the file has none."""
        function = self.optional("cost", None)
        if function is None:
            return {}
        result = self.call(function, dims, "cost")
        if not isinstance(result, dict) or not all(isinstance(v, (int, float)) and v >= 0 for v in result.values()):
            raise self.reject("cost() must return {'bytes': n, 'flops': n} with numbers ≥ 0")
        return {str(k): int(v) for k, v in result.items()}

    def _execute(self) -> types.ModuleType:
        module = types.ModuleType("workbench_task")
        module.__file__ = self.path
        # torch.jit, dataclasses and inspect look a class's source up through these two.
        sys.modules[module.__name__] = module
        linecache.cache[self.path] = (len(self.source), None, self.source.splitlines(keepends=True), self.path)
        try:
            code = compile(self.source, self.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            where = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
            message = error.msg if isinstance(error, SyntaxError) else str(error)
            raise self.reject(f"{where}not valid Python: {message}") from error
        try:
            exec(code, module.__dict__)
        except (Exception, SystemExit) as error:
            line = self._line_of(error)
            where = f" (line {line})" if line else ""
            raise self.reject(f"importing it raised {_short(error)}{where}") from error
        return module

    def _check_contract(self) -> None:
        needed = {
            "Model": "class Model(nn.Module)",
            "get_inputs": "get_inputs()",
            "get_init_inputs": "get_init_inputs()",
        }
        missing = [text for name, text in needed.items() if not callable(getattr(self._module, name, None))]
        if missing:
            raise self.reject(f"lacks {' and '.join(missing)}; a task file defines all of {', '.join(needed)}")
        model = self._module.Model
        if not (isinstance(model, type) and issubclass(model, torch.nn.Module)):
            raise self.reject("Model is not a subclass of torch.nn.Module")

    def _dims_table(self) -> dict[str, dict[str, int]]:
        cases = self.optional("CASES", {"default": {}})
        if not isinstance(cases, dict) or not cases:
            raise self.reject('CASES must be a dict like {"cpu": {"rows": 1024}}')
        return {str(name): self._dims(dims, f"CASES[{name!r}]") for name, dims in cases.items()}

    def _hidden_dims(self) -> list[dict[str, int]]:
        hidden = self.optional("HIDDEN", [])
        if not isinstance(hidden, (list, tuple)):
            raise self.reject("HIDDEN must be a list of dicts of dims")
        return [self._dims(dims, f"HIDDEN[{i}]") for i, dims in enumerate(hidden)]

    def _dims(self, dims: Any, where: str) -> dict[str, int]:
        if not isinstance(dims, dict) or not all(isinstance(v, int) and v > 0 for v in dims.values()):
            raise self.reject(f"{where} must map names of dims to integers > 0")
        order = list(next(iter(self.optional("CASES", {"default": {}}).values())))
        if set(dims) != set(order):
            raise self.reject(f"{where} has dims {sorted(dims)}, the first case has {sorted(order)}: they must agree")
        return {name: dims[name] for name in order}

    def _line_of(self, error: BaseException) -> int | None:
        line, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.path:
                line = trace.tb_lineno
            trace = trace.tb_next
        return line


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def outputs_of(result: Any) -> list[Any] | None:
    """The tensors of a forward's result; None when it is not a tensor or a flat tuple or list of tensors."""
    values = list(result) if isinstance(result, (tuple, list)) else [result]
    return values if values and all(isinstance(v, torch.Tensor) for v in values) else None
