"""One job through the executor, whatever happens in it: there is always a verdict, or an honest reason for none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from workbench_engine.executor import Executor, Job
from workbench_engine.tasks.contract import Task
from workbench_sessions.events import Event, VerdictReached

CORRECT = frozenset(("FASTER", "SAME", "SLOWER", "AMBIGUOUS"))
"""Verdicts that only a verified candidate can have."""

BACKSTOP_S = 60.0


class LocalRunner(Executor, Protocol):
    """An executor that owns this machine's devices and must be started."""

    async def start(self, emit: Callable[[Event], None]) -> Task:
        """Describes the task and measures the floor; emits DeviceSeen, FloorMeasured. Raises TaskRejected, or whatever
        the environment lacks (`str()` is one line; an attribute `remedy`, or "; remedy: ..." in it, says what to do).
        """
        ...


class Evaluated(Struct, frozen=True):
    """`broken` is set when the executor, not the candidate, failed; the verdict is FAILED then."""

    verdict: VerdictReached
    feedback: str = ""
    broken: str = ""


async def evaluate(executor: Executor, job: Job, emit: Callable[[Event], None], backstop_s: float) -> Evaluated:
    """Runs `job`; its facts go to `emit`, except the verdict, which is returned for the archive to complete.

    The executor keeps its own deadlines; `backstop_s` (seconds) only ends a job that it lost.
    """
    said: VerdictReached | None = None

    def hear(event: Event) -> None:
        nonlocal said
        if isinstance(event, VerdictReached) and event.candidate == job.candidate:
            said = event
        else:
            emit(event)

    try:
        async with asyncio.timeout(backstop_s):
            result = await executor.run(job, hear)
    except TimeoutError:
        return _broken(job, f"no result after {backstop_s:.0f} s")
    except Exception as error:
        return _broken(job, f"{type(error).__name__}: {error}")
    verdict = said or VerdictReached(
        candidate=job.candidate,
        verdict=result.verdict,  # type: ignore[arg-type]
        speedup=result.speedup,
        reason=result.feedback,
    )
    return Evaluated(verdict, result.feedback)


def _broken(job: Job, what: str) -> Evaluated:
    reason = f"the executor failed, not the candidate: {what}"
    return Evaluated(VerdictReached(candidate=job.candidate, verdict="FAILED", reason=reason), broken=what)
