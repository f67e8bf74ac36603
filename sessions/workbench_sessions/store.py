"""The folder of sessions: listing, finding, deleting, and the recorded ones that ship."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from workbench_sessions import connection as db
from workbench_sessions.errors import EngineBusy, SessionError, SessionMissing, SessionUnwritable
from workbench_sessions.lock import engine_alive, engine_lock
from workbench_sessions.reader import SessionReader
from workbench_sessions.summary import Summary, summary_of

SUFFIX = ".wb"
SIDE_FILES = ("-wal", "-shm", ".lock")


class SessionSummary(Struct, frozen=True):
    """One row of a list of sessions. `error` is one line when the file cannot be read; then only name, path and size
    are known. `phase` is what the log says last; with no engine alive an unclosed session was interrupted.
    """

    name: str
    path: str
    task: str = ""
    title: str = ""
    policy: str = ""
    backend: str = ""
    best: str | None = None
    best_speedup: float | None = None
    best_confirmed: bool = False
    phase: str = ""
    outcome: str = ""
    evaluations: int = 0
    candidates: int = 0
    accepted: int = 0
    opened_at_s: float = 0.0
    at_s: float = 0.0
    """Unix seconds of the last event that changed this row."""
    size_bytes: int = 0
    engine_alive: bool = False
    error: str = ""

    @property
    def interrupted(self) -> bool:
        """Neither closed nor running: `workbench run --resume` can go on with it."""
        return not self.error and self.phase != "closed" and not self.engine_alive


def list_sessions(folder: Path | str) -> list[SessionSummary]:
    """All sessions of a folder, newest first; broken files are rows with an error. A missing folder is empty."""
    paths = Path(folder).glob(f"*{SUFFIX}") if Path(folder).is_dir() else []
    return sorted((summarize(path) for path in paths if path.is_file()), key=lambda row: (-row.at_s, row.name))


def summarize(path: Path | str) -> SessionSummary:
    """One session's row; never raises for a broken file."""
    target = Path(path)
    try:
        size = sum(p.stat().st_size for p in (target, db.sibling(target, "-wal")) if p.exists())
        with SessionReader(target) as reader:
            # Files of an older writer may lack the row: then it is folded once.
            said = reader.summary() or summary_of(reader.project_at(reader.head_seq()))
    except (SessionError, OSError) as error:
        return SessionSummary(name=target.stem, path=str(target), size_bytes=_size(target), error=str(error))
    return _row(target, said, size)


def _row(path: Path, said: Summary, size: int) -> SessionSummary:
    return SessionSummary(
        name=path.stem,
        path=str(path),
        task=said.task,
        title=said.title,
        policy=said.policy,
        backend=said.backend,
        best=said.best,
        best_speedup=said.best_speedup,
        best_confirmed=said.best_confirmed,
        phase=said.phase,
        outcome=said.outcome,
        evaluations=said.evaluations,
        candidates=said.candidates,
        accepted=said.accepted,
        opened_at_s=said.opened_at_s,
        at_s=said.at_s,
        size_bytes=size,
        engine_alive=engine_alive(path),
    )


def find_session(folders: Iterable[Path | str], name_or_path: str) -> Path:
    """The file meant by a path, a name, or an unambiguous beginning of a name. Raises `SessionMissing`."""
    given = Path(name_or_path).expanduser()
    if given.is_file():
        return given
    names: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(Path(folder).glob(f"*{SUFFIX}")):
            names.setdefault(path.stem, path)
    wanted = given.name.removesuffix(SUFFIX)
    if given.parent == Path() and wanted in names:
        return names[wanted]
    starting = [path for stem, path in names.items() if stem.startswith(wanted)] if given.parent == Path() else []
    if len(starting) == 1:
        return starting[0]
    raise _missing(name_or_path, wanted, starting, names)


def _missing(given: str, wanted: str, starting: list[Path], names: dict[str, Path]) -> SessionError:
    if starting:
        which = ", ".join(path.stem for path in starting[:5])
        return SessionError(given, "more than one session begins like this", f"say which: {which}")
    near = difflib.get_close_matches(wanted, names, n=1)
    if near:
        return SessionError(given, "no such session", f"did you mean {near[0]}?")
    return SessionMissing(given)


def delete_session(path: Path | str) -> None:
    """Removes a session with its side files. Raises `SessionMissing`, `EngineBusy`, `SessionUnwritable`."""
    target = Path(path)
    if not target.is_file():
        raise SessionMissing(target)
    if engine_alive(target):
        raise EngineBusy(target)
    try:
        with engine_lock(target):
            target.unlink()
            for suffix in SIDE_FILES:
                db.sibling(target, suffix).unlink(missing_ok=True)
    except OSError as error:
        raise SessionUnwritable(target, error.strerror or str(error)) from error


def bundled_sessions() -> list[Path]:
    """The recorded sessions that ship with the package."""
    return sorted((Path(__file__).parent / "recorded").glob(f"*{SUFFIX}"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
