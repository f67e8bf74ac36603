"""A tripwire inside the worker of a `module` candidate: what of the process did the candidate's code leave changed?

Taken before the candidate's file is executed and compared afterwards. It runs beside code that could silence it, so
it is never what a verdict rests on; it names what was done where the candidate did not care to hide it.
"""

from __future__ import annotations

import builtins
import json
import os
import socket
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import torch

Noted = list[tuple[str, str]]
"""(finding code, what changed)."""

_TIME = ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "sleep")
_TORCH = ("allclose", "isclose", "equal", "empty", "empty_like")
_TENSOR = ("__eq__", "__sub__", "copy_", "equal", "allclose", "isclose", "cpu", "to", "double", "data_ptr")
_MODULE = ("__call__", "_call_impl", "load_state_dict", "state_dict", "eval", "train")
_CUDA = ("synchronize", "current_stream", "default_stream", "stream")
_EVENT = ("record", "elapsed_time", "synchronize")


def _watched(worker: Any) -> dict[str, Any]:
    """Functions of timer, checker and worker, by name."""
    found: dict[str, Any] = {}

    def add(owner: Any, prefix: str, names: tuple[str, ...]) -> None:
        for name in names:
            if hasattr(owner, name):
                found[f"{prefix}.{name}"] = vars(owner).get(name, None) or getattr(owner, name)

    add(time, "time", _TIME)
    add(torch, "torch", _TORCH)
    add(torch.Tensor, "torch.Tensor", _TENSOR)
    add(torch.cuda, "torch.cuda", _CUDA)
    add(torch.cuda.Event, "torch.cuda.Event", _EVENT)
    add(torch.nn.Module, "torch.nn.Module", _MODULE)
    add(socket.socket, "socket.socket", ("send", "sendall", "recv", "recv_into"))
    add(json, "json", ("loads", "dumps"))
    add(builtins, "builtins", ("type", "isinstance", "len", "compile", "exec", "__import__", "abs", "all", "any"))
    for name, value in vars(worker).items():
        if isinstance(value, types.FunctionType):
            found[f"worker.{name}"] = value
        elif isinstance(value, type) and value.__module__ == worker.__name__:
            add(value, f"worker.{name}", tuple(n for n, v in vars(value).items() if isinstance(v, types.FunctionType)))
    return found


def _wraps(new: Any, old: Any) -> bool:
    """Whether `new` is torch's own wrapper of `old`: importing parts of torch rebinds functions of other parts."""
    inner = getattr(new, "_torchdynamo_orig_callable", None) or getattr(new, "__wrapped__", None)
    return inner is old and str(getattr(new, "__module__", "")).startswith("torch")


_FLAGS: dict[str, Callable[[], Any]] = {
    "torch.num_threads": torch.get_num_threads,
    "torch.default_dtype": lambda: str(torch.get_default_dtype()),
    "torch.grad_enabled": torch.is_grad_enabled,
    "torch.inference_mode": torch.is_inference_mode_enabled,
    "torch.float32_matmul_precision": torch.get_float32_matmul_precision,
    "torch.backends.cuda.matmul.allow_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
    "torch.backends.cudnn.allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
    "torch.backends.cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
    "torch.backends.cudnn.deterministic": lambda: torch.backends.cudnn.deterministic,
    "torch.deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
    "denormals": lambda: bool((torch.full((1,), 1e-40) * 1.0 != 0).item()),
    "cpu affinity": lambda: sorted(os.sched_getaffinity(0)),
}


def flags() -> dict[str, Any]:
    """The process-wide switches that change what or how fast torch computes."""
    read: dict[str, Any] = {}
    for name, get in _FLAGS.items():
        try:
            read[name] = get()
        except (RuntimeError, AttributeError):
            read[name] = None
    return read


class Guard:
    """What the process was like before the candidate. `worker` is the worker's own module."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self._functions = _watched(worker)
        self._flags: dict[str, Any] = {}
        self._threads = 0

    def start(self) -> None:
        """Now the worker is set up for its job: flags and threads from here on are the candidate's doing."""
        self._flags = flags()
        self._threads = threading.active_count()

    def differences(self) -> Noted:
        """What is not as it was."""
        noted: Noted = []
        now = _watched(self._worker)
        for name, function in self._functions.items():
            if now.get(name) is not function and not _wraps(now.get(name), function):
                noted.append(("patched-function", f"replaced {name}"))
        for name, value in flags().items():
            if value != self._flags.get(name):
                noted.append(("global-flag", f"{name} changed from {self._flags.get(name)} to {value}"))
        extra = threading.active_count() - self._threads
        if extra > 0:
            names = [t.name for t in threading.enumerate()][-extra:]
            noted.append(("extra-threads", f"{extra} Python threads live on: {', '.join(names)[:200]}"))
        return noted
