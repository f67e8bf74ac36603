"""The database of past cheats: one SQLite file of the user's, which grows with every confirmed verdict CHEATING.

It ships empty: what is in it was caught here, or added by a person from files.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from workbench_engine.search.novelty import fingerprint
from workbench_sessions.events import FindingRaised

MOST_CASES = 2000
"""The oldest go beyond so many: a cheat that nobody tried for so long costs more to compare than it saves."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cases (
  sha256 TEXT PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL, codes TEXT NOT NULL, said TEXT NOT NULL,
  origin TEXT NOT NULL, at REAL NOT NULL
)
"""


class CasesUnusable(Exception):
    """The file cannot be read or written. `str()` is one line with what to do."""


class Case(Struct, frozen=True):
    """One cheat. `sha256` is of the code without comments; `codes` are those of the findings, `said` their words."""

    sha256: str
    kind: str
    text: str
    codes: tuple[str, ...]
    said: str
    origin: str = ""
    at_s: float = 0.0

    @property
    def name(self) -> str:
        """How people call it."""
        return self.sha256[:8]


def case_of(text: str, kind: str, findings: Sequence[FindingRaised], origin: str = "", at_s: float = 0.0) -> Case:
    """A case from a candidate and what was found: the cheats among the findings, or all where none is one."""
    grave = [f for f in findings if f.severity == "cheat"] or [f for f in findings if f.severity == "warning"]
    codes = tuple(dict.fromkeys(f.code for f in grave))
    said = "; ".join(dict.fromkeys(f.text for f in grave))
    return Case(fingerprint(text, kind), kind, text, codes, said, origin, at_s)


class Cases:
    """The cases in one file. Several processes may use it at once; it is made when the first case comes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def remember(self, case: Case) -> bool:
        """Keeps a case; False when it is known already (its codes are then those seen first). Raises CasesUnusable."""
        with self._open(write=True) as connection:
            row = (case.sha256, case.kind, case.text, msgspec.json.encode(case.codes).decode(), case.said, case.origin)
            sql = "INSERT OR IGNORE INTO cases VALUES (?, ?, ?, ?, ?, ?, ?)"
            new = connection.execute(sql, (*row, case.at_s or time.time())).rowcount == 1
            connection.execute(
                "DELETE FROM cases WHERE sha256 IN (SELECT sha256 FROM cases ORDER BY at DESC LIMIT -1 OFFSET ?)",
                (MOST_CASES,),
            )
        return new

    def all(self) -> list[Case]:
        """Every case, oldest first. Raises CasesUnusable."""
        if not self.path.exists():
            return []
        with self._open() as connection:
            rows = connection.execute(
                "SELECT sha256, kind, text, codes, said, origin, at FROM cases ORDER BY at, sha256"
            ).fetchall()
        try:
            return [
                Case(s, k, t, msgspec.json.decode(c, type=tuple[str, ...]), w, o, a) for s, k, t, c, w, o, a in rows
            ]
        except msgspec.DecodeError as error:
            raise CasesUnusable(f"{self.path}: a case cannot be read ({error}); move the file away") from None

    def named(self, prefix: str) -> list[Case]:
        """The cases whose sha256 begins so."""
        return [case for case in self.all() if case.sha256.startswith(prefix)]

    def forget(self, prefix: str) -> int:
        """Drops the cases whose sha256 begins so; how many. Raises CasesUnusable."""
        gone = [(case.sha256,) for case in self.named(prefix)]
        if gone:
            with self._open(write=True) as connection:
                connection.executemany("DELETE FROM cases WHERE sha256 = ?", gone)
        return len(gone)

    @contextmanager
    def _open(self, write: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            if write:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=5.0)
            try:
                with connection:
                    if write:
                        connection.execute(_SCHEMA)
                    yield connection
            finally:
                connection.close()
        except (sqlite3.Error, OSError) as error:
            raise CasesUnusable(f"{self.path}: {error}; free the disk, or move the file away") from None
