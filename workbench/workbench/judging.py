"""Judging without a search: a task described, or one candidate through the whole referee, from the command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from workbench.errors import EnvironmentProblem, UsageProblem
from workbench_engine.executor import Job
from workbench_engine.referee.advice.advising import advise, as_findings
from workbench_engine.referee.local import EnvironmentLacking, LocalExecutor, Station, StationDied
from workbench_engine.referee.station import Open
from workbench_engine.tasks.contract import Task, TaskRejected
from workbench_sessions.events import Event, FindingRaised, FloorMeasured, VerdictReached, VerifyFinished

Emit = Callable[[Event], None]


class Judged(Struct, frozen=True):
    """All facts of one evaluation, in order; `verdict` is the last of them."""

    verdict: VerdictReached
    facts: list[Event]
    delta: float
    """A/A floor of this machine for this task, |ln speedup|."""


class TaskText(Struct, frozen=True):
    """A task file as read. `path` is absolute."""

    path: Path
    source: str


def read_task(task: str) -> TaskText:
    """The name of a bundled or imported task, or a file. Raises UsageProblem."""
    from workbench.importing.stored import task_file
    from workbench.places import places

    try:
        path = task_file(places().tasks, task)
        return TaskText(path.absolute(), path.read_text(encoding="utf-8"))
    except TaskRejected as error:
        raise UsageProblem(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{task}: cannot be read ({error})") from None


async def describe(task: TaskText, trust: bool) -> Task:
    """The task as the caged reference worker describes and lints it. Raises CommandFailed with one line."""
    cores = sorted(os.sched_getaffinity(0))
    station = Station("cpu0", cores[-1])
    request = Open(
        device=station.device,
        source=task.source,
        path=str(task.path),
        case="",
        core=cores[-1],
        other_cores=cores[:-1] or cores,
        trust=trust,
        floor=False,
    )
    try:
        return (await station.open(request, lambda event: None)).task
    except TaskRejected as error:
        raise UsageProblem(str(error)) from None
    except EnvironmentLacking as error:
        raise EnvironmentProblem(str(error)) from None
    except StationDied as error:
        raise UsageProblem(f"{task.path}: the task could not be described: {error}") from None
    finally:
        await station.kill()


class Judge:
    """One task opened on this machine; candidates judged one after the other. Use as `async with`."""

    def __init__(self, task: TaskText, cache: Path, *, case: str = "", trust: bool = False) -> None:
        self._where = task.path
        self._executor = LocalExecutor(
            task.source, str(task.path), case=case, trust=trust, cache_dir=cache, warm_modules=True
        )
        self._number = 0

    async def __aenter__(self) -> Judge:
        try:
            self.task = await self._executor.start(self._hear_start)
        except BaseException as error:
            await self._executor.aclose()
            if isinstance(error, TaskRejected):
                raise UsageProblem(str(error)) from None
            if isinstance(error, EnvironmentLacking):
                raise EnvironmentProblem(str(error)) from None
            raise
        return self

    async def __aexit__(self, *about: object) -> None:
        with suppress(Exception):
            await self._executor.aclose()

    @property
    def executor(self) -> LocalExecutor:
        """For who wants the facts as they come."""
        return self._executor

    async def judge(self, text: str, kind: str, profile: str = "final") -> Judged:
        """One candidate through build, verify, time and judge."""
        self._number += 1
        name = f"c{self._number:04d}"
        facts: list[Event] = list(as_findings(name, advise(text, kind)))
        job = Job(candidate=name, kind=kind, text=text, profile=profile, promising_above=0.0)
        await self._executor.run(job, facts.append)
        verdict = next(event for event in reversed(facts) if isinstance(event, VerdictReached))
        return Judged(verdict, facts, self._executor.delta)

    def _hear_start(self, event: Event) -> None:
        if isinstance(event, FloorMeasured) and event.too_noisy:
            import sys

            print(f"warning: this machine is noisy (A/A floor ±{event.delta:.1%})", file=sys.stderr)


def story(judged: Judged) -> list[str]:
    """What a person wants to know besides the verdict: checks that failed, findings."""
    said: list[str] = []
    for event in judged.facts:
        if isinstance(event, VerifyFinished):
            said += [f"check {check.name}: {check.detail or 'failed'}" for check in event.checks if not check.ok]
        elif isinstance(event, FindingRaised) and event.code != "advice":
            said.append(f"{event.severity} {event.code}: {event.text}")
    return said


def badges(judged: Judged) -> list[str]:
    """What a reading of the source suggests looking at: no judgement, so it is kept apart from the story."""
    return [f.text for f in judged.facts if isinstance(f, FindingRaised) and f.code == "advice"]
