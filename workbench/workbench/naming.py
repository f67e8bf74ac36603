"""Names of new sessions: the task and the minute, made unique by a number."""

from __future__ import annotations

import re
import time
from pathlib import Path

from workbench.errors import UsageProblem

SUFFIX = ".wb"


def session_path(folder: Path, task: str, wanted: str, now_s: float) -> Path:
    """The file of a new session. Raises UsageProblem when the wanted name is taken or cannot be a file's name."""
    if wanted:
        name = wanted.removesuffix(SUFFIX)
        if not re.fullmatch(r"[\w][\w. -]{0,100}", name):
            raise UsageProblem(f"--name {wanted!r}: use letters, digits, space, dot, dash and underscore")
        path = folder / f"{name}{SUFFIX}"
        if path.exists():
            raise UsageProblem(f"--name {wanted!r}: a session of that name exists; choose another or delete it")
        return path
    base = f"{task_stem(task)}-{time.strftime('%m%d-%H%M', time.localtime(now_s))}"
    path, number = folder / f"{base}{SUFFIX}", 2
    while path.exists():
        path, number = folder / f"{base}-{number}{SUFFIX}", number + 1
    return path


def task_stem(task: str) -> str:
    """What a task is called in a file name."""
    path = Path(task)
    stem = path.parent.name if path.name == "reference.py" and path.parent.name else path.stem
    return re.sub(r"[^\w.-]+", "_", stem) or "session"
