"""What people decided about candidates, as a policy may be told."""

from __future__ import annotations

from collections.abc import Iterable

from workbench_engine.policies.contract import Remark
from workbench_sessions.projection import Candidate

REMARKS_KEPT = 32


def remarks(rows: Iterable[Candidate]) -> tuple[Remark, ...]:
    """The latest decisions, newest first; those without a reason too (an accepted candidate speaks for itself)."""
    decided = [row for row in rows if row.decision in ("accepted", "rejected")]
    decided.sort(key=lambda row: row.changed_seq, reverse=True)
    return tuple(Remark(row.id, row.decision == "accepted", row.decision_reason) for row in decided[:REMARKS_KEPT])
