"""Which candidates the table shows, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from workbench_screens.query import Query
from workbench_sessions.projection import Candidate

_STAGE_ORDER = {name: i for i, name in enumerate(("proposed", "build", "verify", "time", "judge", "done"))}


def _ranked(candidate: Candidate) -> float | None:
    """Measured ratios that are no claim rank below every one that is."""
    if candidate.speedup is None:
        return None
    if candidate.verdict in ("CHEATING", "WRONG", "FAILED"):
        return candidate.speedup - 1e9
    return candidate.speedup


SORTS: dict[str, tuple[Callable[[Candidate], Any], bool]] = {
    "newest": (attrgetter("proposed_seq"), True),
    "id": (attrgetter("id"), False),
    "gen": (attrgetter("generation"), True),
    "isl": (attrgetter("island"), False),
    "parent": (lambda c: c.parents[0] if c.parents else None, False),
    "origin": (attrgetter("origin.policy"), False),
    "stage": (lambda c: _STAGE_ORDER[c.stage], False),
    "speedup": (_ranked, True),
    "verdict": (attrgetter("verdict"), False),
}
"""Column → (key, descending at first). A key of None goes last either way."""


def arrange(candidates: Iterable[Candidate], query: Query, sort: str = "newest", reverse: bool = False) -> list[str]:
    """Ids that the query takes, sorted; `reverse` turns the column's own direction around. Stable."""
    chosen = [c for c in candidates if query.matches(c)] if query.terms else list(candidates)
    key, descending = SORTS[sort]
    if reverse:
        descending = not descending
    if sort == "newest":
        # Candidates are kept in the order they were proposed.
        return [c.id for c in (reversed(chosen) if descending else chosen)]
    keys = list(map(key, chosen))
    places = [i for i, value in enumerate(keys) if value is not None]
    places.sort(key=keys.__getitem__, reverse=descending)
    return [chosen[i].id for i in places] + [c.id for c, value in zip(chosen, keys, strict=True) if value is None]
