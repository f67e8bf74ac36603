"""The session file as viewers read it: any instant, any candidate, while the engine goes on writing."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from types import TracebackType

import msgspec

from workbench_sessions import connection as db
from workbench_sessions.checkpoints import BlockCache, restore
from workbench_sessions.connection import translated
from workbench_sessions.errors import SourceMissing
from workbench_sessions.events import PairsTimed, ResponseReceived, ResponseStreamed, Stamped, decode
from workbench_sessions.fold import fold
from workbench_sessions.projection import Details, Mark, PairSeries, Projection
from workbench_sessions.summary import Summary

READ_CHUNK = 2000


def stamped_rows(connection: sqlite3.Connection, after: int, limit: int, upto: int | None = None) -> list[Stamped]:
    """Events with `after` < seq <= `upto`, in order, at most `limit`."""
    if upto is None:
        rows = connection.execute(
            "SELECT seq, at, mono, kind, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
        )
    else:
        rows = connection.execute(
            "SELECT seq, at, mono, kind, body FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
            (after, upto, limit),
        )
    return [Stamped(seq, at, mono, decode(kind, body)) for seq, at, mono, kind, body in rows]


class SessionReader:
    """Reads only. Raises `SessionMissing`, `NotASession`, `NewerSession`, `DamagedSession` when opened.

    May be used from several threads, one call at a time each (SQLite serializes them).
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._connection = db.open_for_reading(self.path)
        self._blocks = BlockCache()

    def head_seq(self) -> int:
        """`seq` of the last event, 0 when there is none."""
        return int(self._one("SELECT COALESCE(MAX(seq), 0) FROM events"))

    def first_seq(self) -> int:
        return int(self._one("SELECT COALESCE(MIN(seq), 0) FROM events"))

    def at_of(self, seq: int) -> float:
        """Unix seconds of the event `seq`, or of the last one before it; 0.0 before the first."""
        with translated(self.path):
            row = self._connection.execute(
                "SELECT at FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (seq,)
            ).fetchone()
        return float(row[0]) if row else 0.0

    def events(self, after: int, limit: int) -> list[Stamped]:
        """At most `limit` events that follow `after`, in order."""
        with translated(self.path):
            return stamped_rows(self._connection, after, limit)

    def of_kind(self, kind: str) -> list[Stamped]:
        """All events of one kind, in order."""
        with translated(self.path):
            rows = self._connection.execute(
                "SELECT seq, at, mono, kind, body FROM events WHERE kind = ? ORDER BY seq", (kind,)
            ).fetchall()
        return [Stamped(seq, at, mono, decode(kind, body)) for seq, at, mono, kind, body in rows]

    def source(self, sha: str) -> str:
        """A stored text. Raises `SourceMissing`."""
        with translated(self.path):
            row = self._connection.execute("SELECT text FROM sources WHERE sha256 = ?", (sha,)).fetchone()
        if row is None:
            raise SourceMissing(self.path, sha)
        return str(row[0])

    def data_version(self) -> int:
        """Changes whenever another connection has committed anything."""
        return int(self._one("PRAGMA data_version"))

    def request(self) -> str:
        """The JSON the session was created with."""
        with translated(self.path):
            row = self._connection.execute("SELECT value FROM meta WHERE key = 'request'").fetchone()
        return str(row[0]) if row else "{}"

    def summary(self) -> Summary | None:
        """The writer's last summary row, None before the first one."""
        with translated(self.path):
            row = self._connection.execute("SELECT value FROM meta WHERE key = 'summary'").fetchone()
        try:
            return msgspec.json.decode(row[0], type=Summary) if row else None
        except msgspec.DecodeError:
            return None

    def project_at(self, seq: int) -> Projection:
        """The state after event `seq`: the nearest checkpoint before it and the events since."""
        with translated(self.path):
            projection, _ = restore(self._connection, seq, self._blocks)
            while rows := stamped_rows(self._connection, projection.seq, READ_CHUNK, seq):
                for one in rows:
                    fold(projection, one)
        return projection

    def seq_at_time(self, at_s: float) -> int:
        """`seq` of the last event at or before `at_s` (unix seconds); the first one's when all are later."""
        low, high = self.first_seq(), self.head_seq()
        while low < high:
            middle = (low + high + 1) // 2
            if self.at_of(middle) <= at_s:
                low = middle
            else:
                high = middle - 1
        return low

    def pair_series(self, candidate: str, upto: int | None = None) -> list[PairSeries]:
        """All raw pairs of a candidate up to event `upto`, one series a phase, device, batch size and thread count."""
        found: dict[tuple[str, str, int, int], PairSeries] = {}
        for one in self._touching(candidate, upto, "AND e.kind = 'PairsTimed'"):
            e = one.event
            if not isinstance(e, PairsTimed):
                continue
            key = (e.phase, e.device, e.calls, e.threads)
            series = found.get(key)
            if series is None:
                found[key] = PairSeries(
                    candidate=candidate,
                    device=e.device,
                    phase=e.phase,
                    calls=e.calls,
                    threads=e.threads,
                    reference_s=list(e.reference_s),
                    candidate_s=list(e.candidate_s),
                )
            else:
                series.reference_s.extend(e.reference_s)
                series.candidate_s.extend(e.candidate_s)
        return list(found.values())

    def details(self, candidate: str, upto: int | None = None) -> Details:
        """Everything of one candidate up to event `upto`, logs and checks whole; empty for an unknown one."""
        alone = Projection()
        for one in self._touching(candidate, upto, "AND e.kind <> 'PairsTimed'"):
            fold(alone, one)
        return alone.details.get(candidate, Details())

    def streamed(self, prompt: str, after: int = 0, upto: int | None = None) -> list[ResponseStreamed]:
        """The pieces of a prompt's first answer with `after` < seq <= `upto`, in order."""
        found = self._touching(prompt, upto, f"AND t.seq > {int(after)} AND e.kind = 'ResponseStreamed'")
        return [one.event for one in found if isinstance(one.event, ResponseStreamed)]

    def answers(self, prompt: str, upto: int | None = None) -> list[ResponseReceived]:
        """The whole answers to a prompt up to event `upto`, with their sections."""
        found = self._touching(prompt, upto, "AND e.kind = 'ResponseReceived'")
        return [one.event for one in found if isinstance(one.event, ResponseReceived)]

    def holding(self, word: str) -> set[str]:
        """Hashes of the stored texts that contain `word`, whatever its case (ASCII). Reads them all: for a thread."""
        with translated(self.path):
            rows = self._connection.execute(
                "SELECT sha256 FROM sources WHERE instr(lower(text), lower(?)) > 0", (word,)
            ).fetchall()
        return {str(row[0]) for row in rows}

    def history(self, candidate: str, upto: int | None = None) -> list[Stamped]:
        """The events that name one candidate, in order."""
        return self._touching(candidate, upto, "")

    def marks(self) -> list[Mark]:
        """The interesting instants of the whole session."""
        return self.project_at(self.head_seq()).marks

    def copy_to(self, out: Path) -> None:
        """Everything of this instant into a new file, without free pages. Raises `SessionUnwritable`."""
        os.close(os.open(out, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with translated(out):
            self._connection.execute("VACUUM INTO ?", (str(out),))

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> SessionReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _touching(self, candidate: str, upto: int | None, where: str) -> list[Stamped]:
        with translated(self.path):
            rows = self._connection.execute(
                "SELECT e.seq, e.at, e.mono, e.kind, e.body FROM touches t JOIN events e ON e.seq = t.seq "
                f"WHERE t.candidate = ? AND t.seq <= ? {where} ORDER BY t.seq",
                (candidate, upto if upto is not None else self.head_seq()),
            ).fetchall()
        return [Stamped(seq, at, mono, decode(kind, body)) for seq, at, mono, kind, body in rows]

    def _one(self, query: str) -> int | float:
        with translated(self.path):
            value: int | float = self._connection.execute(query).fetchone()[0]
        return value
