"""What a caged worker does with the processor, seen from outside: a clock that its code can neither read nor stop.

The kernel keeps a CPU clock for every process (all its threads, also ended ones), which any other process may read
through `clock_gettime`. Time that a worker spends while no call is running is work hidden from the timed calls: a
thread left behind, a forged early answer, a child that goes on.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

PROC = Path("/proc")


def cpu_clock(pid: int) -> int:
    """Identifier of the CPU clock of process `pid` for `time.clock_gettime_ns` (Linux's posix-cpu-timers layout)."""
    return (~pid << 3) | 2


def children(pid: int) -> list[int]:
    """Direct children of `pid`, of all its threads; empty when it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in (PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                found += [int(word) for word in (task / "children").read_text().split()]
    return found


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, nearest first."""
    found: list[int] = []
    todo = [pid]
    while todo:
        below = children(todo.pop())
        found += below
        todo += below
    return found


class Activity:
    """The processes of one cage. `settle` must be called while only our own code has run in it."""

    def __init__(self, outer: int) -> None:
        """`outer`: pid of the process that was started (bubblewrap, or the worker itself when trusted)."""
        self._outer = outer
        self._worker: int | None = None
        self._ours: frozenset[int] = frozenset()
        self._clocks: list[int] = []

    def settle(self) -> None:
        """Take note of the worker and of the processes that belong to the cage itself."""
        below = descendants(self._outer)
        self._worker = below[-1] if below else self._outer
        self._ours = frozenset((self._outer, *below))
        self._clocks = [cpu_clock(self._worker)]

    def extra(self) -> list[int]:
        """Processes that the candidate started and that live on; their clocks count from now on."""
        strangers = [pid for pid in descendants(self._outer) if pid not in self._ours]
        if self._worker is not None:
            self._clocks = [cpu_clock(pid) for pid in (self._worker, *strangers)]
        return strangers

    def threads(self) -> int:
        """Threads of the worker now."""
        try:
            return sum(1 for _ in (PROC / str(self._worker) / "task").iterdir())
        except OSError:
            return 0

    def cpu_s(self) -> float:
        """CPU seconds that worker and known strangers have used so far."""
        total = 0
        for clock in self._clocks:
            with contextlib.suppress(OSError):
                total += time.clock_gettime_ns(clock)
        return total * 1e-9
