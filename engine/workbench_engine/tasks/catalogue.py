"""Where tasks come from: the bundled ones by name, any other by its file's path. Never imports torch or a task."""

from __future__ import annotations

import difflib
import importlib
from pathlib import Path

from workbench_engine.tasks.contract import TaskRejected
from workbench_engine.tasks.design import DesignSpace

_BUNDLED = Path(__file__).parent / "bundled"


def bundled_names() -> tuple[str, ...]:
    """Names of the tasks that ship with the program, sorted."""
    return tuple(sorted(p.parent.name for p in _BUNDLED.glob("*/reference.py")))


def bundled_path(name: str) -> Path:
    """The task file of a bundled task. Raises TaskRejected when there is none of that name."""
    if name not in bundled_names():
        raise TaskRejected(_unknown(name))
    return _BUNDLED / name / "reference.py"


def bundled_space(name: str) -> DesignSpace | None:
    """The design space of a bundled task; None when it has none. Raises TaskRejected for an unknown name."""
    if not (bundled_path(name).parent / "space.py").is_file():
        return None
    space = importlib.import_module(f"workbench_engine.tasks.bundled.{name}.space").SPACE
    assert isinstance(space, DesignSpace)
    return space


def space_for(path: Path) -> DesignSpace | None:
    """The design space that belongs to a resolved task file; None unless the file is a bundled one."""
    folder = path.resolve().parent
    return bundled_space(folder.name) if folder.parent == _BUNDLED.resolve() else None


def resolve(task: str) -> Path:
    """The task file for a bundled name or a path. Raises TaskRejected with the nearest name when there is neither."""
    if task in bundled_names():
        return bundled_path(task)
    path = Path(task).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        raise TaskRejected(f"{task}: is a folder; give the task's Python file")
    raise TaskRejected(_unknown(task))


def _unknown(task: str) -> str:
    looks_like_path = "/" in task or task.endswith(".py")
    if looks_like_path:
        return f"{task}: no such file; give a KernelBench task file or one of: {', '.join(bundled_names())}"
    near = difflib.get_close_matches(task, bundled_names(), n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(bundled_names())}"
    return f"{task}: no bundled task and no file of that name; {hint}"
