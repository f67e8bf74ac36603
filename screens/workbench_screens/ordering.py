"""Which candidates the table shows, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from workbench_sessions.projection import Candidate

from workbench_screens.query import Query

SORTS: dict[str, tuple[Callable[[Candidate], Any], bool]] = {
    "newest": (lambda c: c.proposed_seq, True),
    "id": (lambda c: c.id, False),
    "gen": (lambda c: c.generation, True),
    "isl": (lambda c: c.island, False),
    "parent": (lambda c: c.parents[0] if c.parents else None, False),
    "origin": (lambda c: c.origin.policy, False),
    "stage": (lambda c: ("proposed", "build", "verify", "time", "judge", "done").index(c.stage), False),
    "speedup": (lambda c: _ranked(c), True),
    "verdict": (lambda c: c.verdict, False),
}
"""Column → (key, descending at first). A key of None goes last either way."""


def _ranked(candidate: Candidate) -> float | None:
    """Measured ratios that are no claim rank below every one that is."""
    if candidate.speedup is None:
        return None
    if candidate.verdict in ("CHEATING", "WRONG", "FAILED"):
        return candidate.speedup - 1e9
    return candidate.speedup


def arrange(candidates: Iterable[Candidate], query: Query, sort: str = "newest", reverse: bool = False) -> list[str]:
    """Ids that the query takes, sorted; `reverse` turns the column's own direction around. Stable."""
    chosen = [c for c in candidates if query.matches(c)] if query.terms else list(candidates)
    key, descending = SORTS[sort]
    if reverse:
        descending = not descending
    if sort == "newest":
        # Candidates are kept in the order they were proposed.
        return [c.id for c in (reversed(chosen) if descending else chosen)]
    known = [(value, c.id) for c in chosen if (value := key(c)) is not None]
    known.sort(key=lambda item: item[0], reverse=descending)
    return [name for _, name in known] + [c.id for c in chosen if key(c) is None]
