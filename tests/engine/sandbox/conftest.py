"""A bundled task on a real bench with short deadlines, for candidates that try to break out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.benching.trials import Trial
from workbench_engine.backends.cpu import CpuBuilder
from workbench_engine.referee import worker_process
from workbench_engine.referee.bench import Bench
from workbench_engine.referee.protocol import Protocol
from workbench_engine.sandbox.level import probe
from workbench_engine.sandbox.limits import Limits
from workbench_engine.tasks.catalogue import bundled_path
from workbench_sessions.events import Event, FindingRaised, VerdictReached

COMPILE_S = 5.0
CALL_S = 3.0
SETUP_S = 60.0
SMALLER = ('"rows": 1024, "cols": 2048', '"rows": 64, "cols": 512')
"""Containment does not depend on the size, and there is a whole verdict to reach after each attempt."""
MODEST = Limits(memory_bytes=5 << 30, cpu_s=300)
"""Less than a module is given otherwise: the memory bombs really take it, and others share this machine."""


class Court:
    """Judges trials; `findings` are those of the last one."""

    def __init__(self, folder: Path) -> None:
        self._events: list[Event] = []
        self._cores = sorted(os.sched_getaffinity(0))
        self._builder = CpuBuilder(probe(), folder, COMPILE_S)
        path = bundled_path("softmax_rows")
        self._bench = Bench(
            level=probe(),
            device="cpu",
            source=path.read_text().replace(*SMALLER),
            path=str(path),
            case="",
            core=self._cores[-1],
            other_cores=self._cores[:-1] or self._cores,
            warm_modules=False,
            emit=self._events.append,
            floor=False,
            protocol=Protocol(call_deadline_s=CALL_S, setup_deadline_s=SETUP_S),
        )

    @property
    def findings(self) -> set[str]:
        return {e.code for e in self._events if isinstance(e, FindingRaised) and e.severity == "cheat"}

    def judge(self, trial: Trial) -> VerdictReached:
        self._events.clear()
        library = ""
        if trial.kind == "kernel":
            build = asyncio.run(self._builder.build(trial.text, self._cores))
            if not build.ok:
                return VerdictReached(trial.name, "FAILED", reason=f"{build.feedback}\n{build.log}")
            library = build.path
        return self._bench.judge(trial.name, trial.kind, trial.text, library, "search", 0.0, 0, [])

    def close(self) -> None:
        self._bench.close()


@pytest.fixture(scope="session")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    before = os.sched_getaffinity(0)
    usual = getattr(worker_process, "MODULE")  # noqa: B009
    setattr(worker_process, "MODULE", MODEST)  # noqa: B010
    made = Court(tmp_path_factory.mktemp("builds"))
    yield made
    made.close()
    setattr(worker_process, "MODULE", usual)  # noqa: B010
    os.sched_setaffinity(0, before)
