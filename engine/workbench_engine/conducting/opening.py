"""The facts a session opens with, and what a resumed engine takes over from the log."""

from __future__ import annotations

import hashlib

from workbench_engine.host import installed
from workbench_engine.settings import RunSettings
from workbench_engine.tasks.contract import ShapeCase, Task
from workbench_engine.tasks.design import DesignSpace
from workbench_sessions.events import HostCard, SessionOpened, TaskCard
from workbench_sessions.projection import Candidate, Projection


def case_of(task: Task, wanted: str, backend: str) -> ShapeCase:
    """The timed shapes: the wanted case, else the backend's own, else the first. Raises KeyError with the names."""
    if wanted and wanted not in task.cases:
        raise KeyError(f"task {task.name} has no case {wanted!r}; known: {', '.join(task.cases)}")
    return task.cases[wanted] if wanted else task.cases.get(backend) or next(iter(task.cases.values()))


def task_card(task: Task, case: ShapeCase, space: DesignSpace | None) -> TaskCard:
    """What a viewer must know of the task."""
    dimensions = space.dimensions if space is not None else ()
    return TaskCard(
        name=task.name,
        title=task.title,
        source_sha256=hashlib.sha256(task.source.encode("utf-8", "replace")).hexdigest(),
        dims=dict(case.dims),
        dtype=task.dtype,
        bytes_moved=case.bytes_moved,
        flops=case.flops,
        world_size=task.world_size,
        space_size=space.size if space is not None else None,
        dimensions={d.name: list(d.values) for d in dimensions},
        dimension_groups={d.name: d.group for d in dimensions},
    )


def unknown_task(settings: RunSettings) -> TaskCard:
    """The card of a task that could not be described: the session still says what it was about."""
    sha256 = hashlib.sha256(settings.source.encode("utf-8", "replace")).hexdigest()
    return TaskCard(name=settings.task, title="", source_sha256=sha256, dims={}, dtype="")


def session_opened(
    settings: RunSettings, card: TaskCard, host: HostCard, session_id: str, name: str, sandbox_level: str, folder: str
) -> SessionOpened:
    return SessionOpened(
        session_id=session_id,
        name=settings.name or name,
        task=card,
        backend=settings.backend,
        policy=settings.policy,
        seed=settings.seed,
        budget=settings.budget,
        mode=settings.mode,
        islands=settings.islands,
        sandbox_level=sandbox_level,
        host=host,
        version=installed("kernel-workbench"),
        output_dir=folder,
        settings=settings.shown(),
    )


def unjudged(p: Projection) -> list[Candidate]:
    """Candidates that were proposed and never judged, in the order of their proposal."""
    return sorted((r for r in p.candidates.values() if r.verdict is None), key=lambda r: r.proposed_seq)
