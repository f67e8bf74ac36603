"""sessions list | show | delete | export, and diff."""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from workbench.commands.common import Json, SessionName, configuration, session_named
from workbench.commands.running import finished
from workbench.display.result import print_result
from workbench.display.words import ratio
from workbench.errors import EnvironmentProblem, UsageProblem, nearest
from workbench_sessions import export as exporting
from workbench_sessions.feed import SessionFeed
from workbench_sessions.projection import Projection
from workbench_sessions.store import SessionSummary, bundled_sessions, delete_session, list_sessions, summarize

app = typer.Typer(no_args_is_help=True, help="List, show, delete and export sessions.")
FORMATS = ("events", "candidates", "sources", "session")


@app.command("list")
def list_(json: Json = False) -> None:
    """All sessions, the newest first, then the recorded ones that ship."""
    where = configuration()[1]
    rows = [*list_sessions(where.sessions), *(summarize(path) for path in bundled_sessions())]
    if json:
        print(msgspec.json.format(msgspec.json.encode(rows).decode(), indent=2))
        return
    if not rows:
        print(f"no session in {where.sessions}; start one with `workbench run TASK`", file=sys.stderr)
    for line in session_lines(rows):
        print(line)


@app.command()
def show(session: SessionName, json: Json = False) -> None:
    """The result of one session so far."""
    path = session_named(session, configuration()[1])
    print_result(finished(path), path, json)


@app.command()
def delete(
    session: SessionName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a session and its side files; accepted kernels stay."""
    path = session_named(session, configuration()[1])
    if path.resolve() in {one.resolve() for one in bundled_sessions()}:
        raise UsageProblem(f"{path.stem} ships with the program and is not deleted")
    if not yes:
        if not sys.stdin.isatty():
            raise UsageProblem(f"{path.stem}: give --yes to delete it without being asked")
        if not typer.confirm(f"Delete {path}?", err=True):
            return
    delete_session(path)


@app.command()
def export(
    session: SessionName,
    format: Annotated[str, typer.Option("--format", help="events, candidates, sources or session.")] = "events",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File (folder for sources); default: stdout.")
    ] = None,
) -> None:
    """Take a session elsewhere, redacted: events as JSON lines, candidates as CSV, sources, or a small .wb copy."""
    path = session_named(session, configuration()[1])
    if format not in FORMATS:
        raise UsageProblem(f"--format {format!r} is unknown; {nearest(format, FORMATS)}")
    if format in ("sources", "session"):
        if output is None:
            raise UsageProblem(f"--format {format} needs --output")
        writer: Callable[[Path, Path], int] = exporting.export_sources if format == "sources" else exporting.compact
        count = _written(output, lambda: writer(path, output))
        print(f"{output}: {count} {'files' if format == 'sources' else 'bytes'}", file=sys.stderr)
        return
    table = exporting.export_events_jsonl if format == "events" else exporting.export_candidates_csv
    if output is None:
        table(path, sys.stdout)
        return
    with_file: Path = output

    def write() -> int:
        with with_file.open("w", encoding="utf-8", newline="") as out:
            return table(path, out)

    print(f"{output}: {_written(output, write)} rows", file=sys.stderr)


def diff(
    session: SessionName,
    a: Annotated[str, typer.Argument(help="A candidate's id, or reference.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
) -> None:
    """What differs between two candidates, as a unified diff."""
    path = session_named(session, configuration()[1])
    feed = SessionFeed(path, follow=True)
    try:
        texts = [feed.source(source_of(feed.projection, name)).splitlines(keepends=True) for name in (a, b)]
    finally:
        feed.close()
    for line in difflib.unified_diff(texts[0], texts[1], a, b):
        sys.stdout.write(line if line.endswith("\n") else line + "\n")


def source_of(p: Projection, name: str) -> str:
    """The hash of a candidate's text, or of the task's for "reference". Raises UsageProblem."""
    if name == "reference" and p.header.task is not None:
        return p.header.task.source_sha256
    row = p.candidates.get(name)
    if row is None:
        raise UsageProblem(
            f"there is no candidate {name!r} in this session; {nearest(name, ['reference', *p.candidates])}"[:300]
        )
    return row.source_sha256


def session_lines(rows: list[SessionSummary]) -> list[str]:
    """One line a session, columns aligned."""
    width = max((len(row.name) for row in rows), default=0)
    return [session_line(row, width) for row in rows]


def session_line(row: SessionSummary, width: int) -> str:
    if row.error:
        return f"{row.name:<{width}}  unreadable: {row.error}"
    state = "running" if row.engine_alive else "cut off" if row.interrupted else row.outcome or row.phase
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.at_s))
    best = ratio(row.best_speedup)
    return (
        f"{row.name:<{width}}  {when}  {row.task:<16}  {row.policy:<12}  {row.evaluations:>5} evals  "
        f"best {best:>7}  {state:<9}  {row.size_bytes / 1e6:.1f} MB"
    )


def _written(output: Path, action: Callable[[], int]) -> int:
    try:
        return action()
    except OSError as error:
        raise EnvironmentProblem(f"{output}: cannot be written ({error.strerror or error})") from error
