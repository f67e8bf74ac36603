"""Changing a candidate's row so that the tallies and the marks follow."""

from __future__ import annotations

from msgspec.structs import replace

from workbench_sessions.events import Stamped
from workbench_sessions.projection import Candidate, Mark, Projection

_STAGE_COUNT = {"build": "building", "verify": "verifying", "time": "timing", "judge": "timing", "done": "done"}
_VERDICT_COUNT = {
    "FASTER": "faster",
    "SLOWER": "slower",
    "SAME": "same",
    "AMBIGUOUS": "ambiguous",
    "WRONG": "wrong",
    "FAILED": "failed",
    "CHEATING": "cheating",
}
_DECISION_COUNT = {"accepted": "accepted", "rejected": "rejected", "review": "review"}


def add_mark(p: Projection, s: Stamped, kind: str, text: str) -> None:
    p.marks.append(Mark(seq=s.seq, at_s=s.at_s, kind=kind, text=text))


def put_row(p: Projection, s: Stamped, old: Candidate, new: Candidate) -> None:
    """Replaces a row and moves the tallies with it."""
    new = replace(new, changed_seq=s.seq)
    p.candidates[old.id] = new
    change: dict[str, int] = {}
    if old.stage != new.stage:
        _move(change, _STAGE_COUNT.get(old.stage), _STAGE_COUNT.get(new.stage))
    if old.verdict != new.verdict:
        _move(change, _VERDICT_COUNT.get(old.verdict or ""), _VERDICT_COUNT.get(new.verdict or ""))
    if old.decision != new.decision:
        _move(change, _DECISION_COUNT.get(old.decision or ""), _DECISION_COUNT.get(new.decision or ""))
    if change:
        counts = p.counts
        p.counts = replace(counts, **{name: getattr(counts, name) + by for name, by in change.items()})


def _move(change: dict[str, int], source: str | None, target: str | None) -> None:
    if source == target:
        return
    if source:
        change[source] = change.get(source, 0) - 1
    if target:
        change[target] = change.get(target, 0) + 1
