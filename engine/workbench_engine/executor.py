"""The one seam of evaluation: a job in, an outcome out, wherever it runs.

`LocalExecutor` (this machine's devices) is the default; a cluster adapter implements the same protocol around the
same sandboxed local runner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from workbench_sessions.events import Event


class Job(Struct, frozen=True):
    """Everything needed to judge one candidate. `text` is the candidate's file; `profile` "search" or "final".

    `promising_above`: in profile "search", a candidate whose quick estimate is not above this ratio stops after the
    quick pairs (it cannot matter); the verdict still carries its interval. `other_than`: a device that should not be
    used where there is another.
    """

    candidate: str
    kind: str
    text: str
    case: str = ""
    profile: str = "search"
    promising_above: float = 1.0
    deadline_s: float = 120.0
    other_than: str = ""


class JobResult(Struct, frozen=True):
    """The facts of one evaluation, in order, and its verdict's essentials."""

    candidate: str
    verdict: str
    speedup: float | None
    feedback: str


class Executor(Protocol):
    """Runs jobs. `emit` receives each fact (an event) as it becomes one; it is called from the event loop."""

    async def run(self, job: Job, emit: Callable[[Event], None]) -> JobResult: ...

    async def aclose(self) -> None: ...
