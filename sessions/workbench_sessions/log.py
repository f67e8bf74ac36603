"""The session file as its engine writes it, and as a viewer drops wishes into it.

One engine process writes (`engine_lock`); any number of processes read (`SessionReader`) and send commands meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from workbench_sessions import connection as db
from workbench_sessions.checkpoints import CHECKPOINT_EVERY, restore
from workbench_sessions.commands import Command, UnreadableCommand, decode_command, encode_command
from workbench_sessions.connection import transaction, translated
from workbench_sessions.errors import SessionExists, SessionUnwritable
from workbench_sessions.events import (
    ActivityChanged,
    Event,
    PromptSent,
    ResponseReceived,
    ResponseStreamed,
    Stamped,
    decode,
    encode,
    kind_of,
)
from workbench_sessions.fold import fold
from workbench_sessions.lock import EngineLock, engine_alive, engine_lock
from workbench_sessions.projection import Projection
from workbench_sessions.reader import SessionReader, stamped_rows
from workbench_sessions.summary import SUMMARY_KINDS, summary_of

__all__ = [
    "EngineLock",
    "SessionReader",
    "SessionWriter",
    "engine_alive",
    "engine_lock",
    "send_command",
]

Clock = Callable[[], tuple[float, float]]
"""Gives (unix seconds, monotonic seconds)."""

READ_CHUNK = 5000


def wall_clock() -> tuple[float, float]:
    return time.time(), time.monotonic()


class SessionWriter:
    """The only writer of events. Safe to call from several threads of one process.

    After an exception of `append` nothing of that call is stored or folded.
    """

    def __init__(self, path: Path, clock: Clock, checkpoint_every: int) -> None:
        """Use `create` or `open`."""
        self.path = path
        self._clock = clock
        self._checkpoint_every = checkpoint_every
        self._lock = threading.RLock()
        self._connection = db.open_for_writing(path)
        self._load()

    @classmethod
    def create(
        cls,
        path: Path | str,
        request_json: str,
        clock: Clock = wall_clock,
        checkpoint_every: int = CHECKPOINT_EVERY,
    ) -> SessionWriter:
        """A new session file (0600; its folders 0700). Raises `SessionExists`, `SessionUnwritable`, `SessionFull`."""
        target = Path(path)
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError as error:
            raise SessionExists(target) from error
        except OSError as error:
            raise SessionUnwritable(target, error.strerror or str(error)) from error
        # Left over from a session of this name that was deleted by hand: SQLite would take them for this one's.
        for suffix in ("-wal", "-shm"):
            db.sibling(target, suffix).unlink(missing_ok=True)
        try:
            connection = db.create(target)
            with translated(target):
                connection.execute("INSERT INTO meta VALUES ('request', ?)", (request_json,))
                connection.close()
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return cls(target, clock, checkpoint_every)

    @classmethod
    def open(
        cls, path: Path | str, clock: Clock = wall_clock, checkpoint_every: int = CHECKPOINT_EVERY
    ) -> SessionWriter:
        """An existing session, to go on with. Raises the errors of `workbench_sessions.errors`."""
        return cls(Path(path), clock, checkpoint_every)

    @property
    def projection(self) -> Projection:
        """The state after the last event. Read only: what you change here is not in the file."""
        return self._projection

    def append(self, events: Sequence[Event]) -> list[Stamped]:
        """Stores and folds events in one transaction. Raises `SessionFull` with nothing of them stored."""
        if not events:
            return []
        with self._lock:
            rows, stamped = self._stamp(events)
            try:
                with transaction(self._connection, self.path):
                    self._connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
                    self._connection.executemany(
                        "INSERT INTO touches VALUES (?, ?)",
                        [(name, s.seq) for s in stamped if (name := _touched(s.event)) is not None],
                    )
                    summary_due = False
                    for one in stamped:
                        fold(self._projection, one)
                        summary_due = summary_due or type(one.event) in SUMMARY_KINDS
                        if one.seq - self._checkpoints.last_seq >= self._checkpoint_every:
                            self._checkpoints.write(self._connection, self._projection)
                    if summary_due:
                        self._put_summary()
            except BaseException:
                # The fold ran ahead of what is stored: back to what the file says.
                self._load()
                raise
            self._at_s, self._next_seq = stamped[-1].at_s, stamped[-1].seq + 1
            return stamped

    def put_source(self, text: str) -> str:
        """Stores a text by its content; returns the SHA-256 of its UTF-8 bytes, in hex."""
        data = text.encode("utf-8", "replace")
        sha = hashlib.sha256(data).hexdigest()
        with self._lock, transaction(self._connection, self.path):
            self._connection.execute("INSERT OR IGNORE INTO sources VALUES (?, ?)", (sha, data.decode()))
        return sha

    def take_commands(self) -> list[tuple[int, Command]]:
        """Commands not taken yet, oldest first, each given out once. Unreadable ones come as `UnreadableCommand`."""
        waiting = "SELECT id, kind, body FROM commands WHERE taken_at IS NULL ORDER BY id"
        with self._lock:
            with translated(self.path):
                # Polled often and mostly in vain: look first, without the write lock.
                if self._connection.execute(waiting + " LIMIT 1").fetchone() is None:
                    return []
            with transaction(self._connection, self.path):
                rows = self._connection.execute(waiting).fetchall()
                now = self._clock()[0]
                self._connection.executemany(
                    "UPDATE commands SET taken_at = ? WHERE id = ?", [(now, number) for number, _, _ in rows]
                )
        return [(number, _command(kind, body)) for number, kind, body in rows]

    def put_state(self, key: str, value: bytes) -> None:
        """Keeps bytes of the engine's own (a policy's weights) beside the log; the last ones by `key`."""
        with self._lock, transaction(self._connection, self.path):
            self._connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (key, value))

    def get_state(self, key: str) -> bytes | None:
        with self._lock, translated(self.path):
            row = self._connection.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
        return bytes(row[0]) if row else None

    def request(self) -> str:
        """The JSON the session was created with."""
        with self._lock, translated(self.path):
            row = self._connection.execute("SELECT value FROM meta WHERE key = 'request'").fetchone()
        return str(row[0]) if row else "{}"

    def close(self) -> None:
        """Stores a last checkpoint, so that the session opens fast, and lets go of the file."""
        with self._lock:
            try:
                if self._projection.seq > self._checkpoints.last_seq:
                    with transaction(self._connection, self.path):
                        self._checkpoints.write(self._connection, self._projection)
                        self._put_summary()
            finally:
                db.settle(self._connection)
                self._connection.close()

    def __enter__(self) -> SessionWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _load(self) -> None:
        with translated(self.path):
            self._projection, self._checkpoints = restore(self._connection)
            while rows := stamped_rows(self._connection, self._projection.seq, READ_CHUNK):
                for one in rows:
                    fold(self._projection, one)
        self._at_s = self._projection.at_s
        self._next_seq = self._projection.seq + 1

    def _stamp(self, events: Sequence[Event]) -> tuple[list[tuple[int, float, float, str, str]], list[Stamped]]:
        rows: list[tuple[int, float, float, str, str]] = []
        stamped: list[Stamped] = []
        at_s = self._at_s
        for seq, event in enumerate(events, self._next_seq):
            now, mono_s = self._clock()
            # A wall clock set back would break the search by time: it waits until time has caught up.
            at_s = max(at_s, now)
            kind, body = kind_of(event), encode(event)
            rows.append((seq, at_s, mono_s, kind, body))
            # What a reader will get (JSON has no NaN, say), not what was handed in: both must fold alike.
            stamped.append(Stamped(seq=seq, at_s=at_s, mono_s=mono_s, event=decode(kind, body)))
        return rows, stamped

    def _put_summary(self) -> None:
        body = msgspec.json.encode(summary_of(self._projection)).decode()
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('summary', ?)", (body,))


def _touched(event: Event) -> str | None:
    """The candidate or prompt an event tells of; lanes name a candidate too, but nobody asks for them by it."""
    if isinstance(event, (PromptSent, ResponseStreamed, ResponseReceived)):
        return event.prompt
    name = None if isinstance(event, ActivityChanged) else getattr(event, "candidate", None)
    return name if isinstance(name, str) else None


def _command(kind: str, body: str) -> Command:
    try:
        return decode_command(body)
    except msgspec.DecodeError as error:
        return UnreadableCommand(kind=kind, body=body, problem=str(error))


def send_command(path: Path | str, command: Command) -> int:
    """Leaves a wish for the session's engine; returns its id, which a `CommandRefused` would name."""
    target = Path(path)
    connection = db.open_for_writing(target)
    try:
        kind, body = encode_command(command)
        with transaction(connection, target):
            cursor = connection.execute(
                "INSERT INTO commands (at, kind, body) VALUES (?, ?, ?)", (time.time(), kind, body)
            )
            return int(cursor.lastrowid or 0)
    finally:
        connection.close()
