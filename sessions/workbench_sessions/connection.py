"""The SQLite side of a session file: its tables, how it is opened, what its errors mean."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from workbench_sessions.errors import (
    DamagedSession,
    EngineBusy,
    NewerSession,
    NotASession,
    SessionError,
    SessionFull,
    SessionLocked,
    SessionMissing,
    SessionUnwritable,
)

FORMAT = 1
"""Version of the tables; event kinds may grow without changing it."""

APPLICATION_ID = 0x77624B31
BUSY_TIMEOUT_S = 10.0

TABLES = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, at REAL NOT NULL, mono REAL NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE touches (candidate TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (candidate, seq)) WITHOUT ROWID;
CREATE TABLE sources (sha256 TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE commands (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, taken_at REAL);
CREATE INDEX commands_waiting ON commands (id) WHERE taken_at IS NULL;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE state (key TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE checkpoints (seq INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE blocks (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
"""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turns SQLite's exceptions into ours."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _meaning(path, error) from error
    except UnicodeDecodeError as error:
        # Of SQLite's own message about a damaged table.
        raise DamagedSession(path, "it holds text that is none") from error


def _meaning(path: Path, error: sqlite3.DatabaseError) -> SessionError:
    text = str(error)
    if isinstance(error, sqlite3.IntegrityError) and "events" in text:
        return EngineBusy(path)
    if "not a database" in text:
        return NotASession(path)
    if "full" in text:
        return SessionFull(path)
    if "locked" in text or "busy" in text:
        return SessionLocked(path)
    if "malformed" in text or "disk I/O" in text or "no such table" in text or "no such column" in text:
        return DamagedSession(path, text)
    if "unable to open" in text or "readonly" in text:
        return SessionMissing(path) if not path.exists() else SessionUnwritable(path, text)
    return DamagedSession(path, text)


def create(path: Path) -> sqlite3.Connection:
    """An empty session file with its tables; the file must exist and be empty (made with its permissions before)."""
    with translated(path):
        connection = _connect(path, "rw")
        # Bodies are often 1 to 3 kB: larger pages waste less behind them.
        connection.execute("PRAGMA page_size = 8192")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA journal_mode = WAL")
        _tune(connection)
        connection.executescript("BEGIN;" + TABLES + "COMMIT;")
        connection.execute("INSERT INTO meta VALUES ('version', ?)", (str(FORMAT),))
        return connection


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Raises `SessionMissing`, `NotASession`, `NewerSession`, `DamagedSession`, `SessionUnwritable`."""
    connection = _checked(path, "rw")
    with translated(path):
        _tune(connection)
        connection.execute("PRAGMA journal_mode = WAL")
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """As `open_for_writing`, but changes nothing; also works where the folder cannot be written."""
    return _checked(path, "ro")


def _tune(connection: sqlite3.Connection) -> None:
    # NORMAL in WAL mode: a killed process loses nothing that was committed; only a power cut can cost the last moments.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA temp_store = MEMORY")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    query = f"mode={mode}"
    # A WAL file cannot be opened in a folder that cannot be written unless SQLite is told that nothing changes it.
    if mode == "ro" and not os.access(path.parent, os.W_OK) and not sibling(path, "-wal").exists():
        query += "&immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?{query}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA cache_size = -16000")
    return connection


def _checked(path: Path, mode: str) -> sqlite3.Connection:
    if not path.exists():
        raise SessionMissing(path)
    if not path.is_file():
        raise NotASession(path, "a folder, not a session")
    with translated(path):
        connection = _connect(path, mode)
    try:
        with translated(path):
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                raise NotASession(path)
            row = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
            page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
        # SQLite fills up a last page that is cut short; a writer's own pages may be on their way while there is a WAL.
        if path.stat().st_size % page_bytes and not sibling(path, "-wal").exists():
            raise DamagedSession(path, "its end is missing")
        if row is None or not str(row[0]).isdigit():
            raise DamagedSession(path, "its format version is unreadable")
        if int(row[0]) > FORMAT:
            raise NewerSession(path, int(row[0]), FORMAT)
    except BaseException:
        connection.close()
        raise
    return connection


def settle(connection: sqlite3.Connection) -> None:
    """Leaves one whole file behind, so that copying it copies everything.

    Without viewers it also leaves WAL mode, and then opens in a folder that cannot be written.
    """
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.DatabaseError:
        pass


def sibling(path: Path, suffix: str) -> Path:
    """The file next to `path` with `suffix` after its whole name: "-wal", "-shm", ".lock"."""
    return path.with_name(path.name + suffix)


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All or nothing; typed errors. The write lock is taken at once, so that it cannot fail half-way."""
    with translated(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
