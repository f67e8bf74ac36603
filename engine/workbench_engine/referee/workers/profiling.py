"""Which functions a candidate's time goes to, seen from inside its worker. Importable by path, like `wire`.

The candidate shares this process and could forge what is said here, so it is worth labels, never a verdict.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile

MOST_NAMES = 200
FOREIGN = ("torch", "numpy", "builtins", "functools", "math", "time", "_", "posix", "gc", "sys")


def profile(call: Callable[[], object], repeats: int = 3) -> dict[str, Any]:
    """Runs `call` 3 * repeats + 1 times and says where its time went, ready for JSON.

    `wall_s`: seconds of `repeats` calls without any profiler; `ops`: [name, self seconds, calls] of every dispatched
    operator in as many calls, longest first; `own`: the same of compiled functions that Python called directly and
    that are no part of torch, numpy or Python (pybind11, C extensions, cffi's API mode; ctypes cannot be seen).
    Whatever `call` raises goes through.
    """
    call()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    wall_s = time.perf_counter() - start
    with torch_profile(activities=[ProfilerActivity.CPU], acc_events=True) as seen:
        for _ in range(repeats):
            call()
    ops = [[e.key, e.self_cpu_time_total / 1e6, e.count] for e in seen.key_averages()]
    ops.sort(key=lambda op: -op[1])
    return {"repeats": repeats, "wall_s": wall_s, "ops": ops[:MOST_NAMES], "own": own_functions(call, repeats)}


def own_functions(call: Callable[[], object], repeats: int) -> list[list[Any]]:
    """[name, seconds, calls] of compiled functions of the candidate's own, as the interpreter enters them."""
    spent: dict[str, list[float]] = {}
    open_calls: list[tuple[str, int]] = []

    def watch(frame: object, event: str, argument: Any) -> None:
        if event == "c_call":
            name = _own_name(argument)
            if name:
                open_calls.append((name, time.perf_counter_ns()))
        elif event in ("c_return", "c_exception") and open_calls and _own_name(argument) == open_calls[-1][0]:
            name, began = open_calls.pop()
            if not open_calls:
                sums = spent.setdefault(name, [0.0, 0])
                sums[0] += (time.perf_counter_ns() - began) / 1e9
                sums[1] += 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        for _ in range(repeats):
            call()
    finally:
        sys.setprofile(before)
    rows: list[list[Any]] = [[name, seconds, int(calls)] for name, (seconds, calls) in spent.items()]
    return sorted(rows, key=lambda row: -row[1])[:MOST_NAMES]


def _own_name(function: Any) -> str:
    """`module.function` of a compiled function nobody but the candidate brought; "" for all others."""
    module = getattr(function, "__module__", None)
    if not isinstance(module, str) or module.partition(".")[0].startswith(FOREIGN):
        return ""
    if module.partition(".")[0] in sys.stdlib_module_names:
        return ""
    return f"{module}.{getattr(function, '__name__', '?')}"
