"""What commands share: the configuration of this call, sessions by name, and output to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.config import Resolved, load
from workbench.errors import UsageProblem
from workbench.places import Places, places
from workbench_sessions.store import find_session, list_sessions

NoTui = Annotated[bool, typer.Option("--no-tui", help="Lines instead of the full screen.")]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")]
Trust = Annotated[
    bool | None, typer.Option("--trust/--no-trust", help="Run candidates without a sandbox; verdicts say so.")
]
SessionName = Annotated[str, typer.Argument(help="A session's name, the beginning of one, or a .wb file.")]


def configuration(flags: Mapping[str, Any] | None = None) -> tuple[Resolved, Places]:
    """The effective configuration of this process. Raises UsageProblem."""
    here = places()
    return load(here.config_file, os.environ, flags), here


def session_named(name: str, where: Places) -> Path:
    """The file of a session. Raises SessionError."""
    return find_session(where.session_folders(), name)


def newest_session(where: Places) -> Path:
    """The session to attach to when none is named: a running one before all others. Raises UsageProblem."""
    rows = [row for row in list_sessions(where.sessions) if not row.error]
    if not rows:
        raise UsageProblem(f"no session in {where.sessions}; start one with `workbench run TASK`")
    running = [row for row in rows if row.engine_alive]
    return Path((running or rows)[0].path)
