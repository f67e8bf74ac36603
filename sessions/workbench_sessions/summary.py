"""One session in one row: kept in its file by the writer, so that a list of sessions needs no fold."""

from __future__ import annotations

from msgspec import Struct

from workbench_sessions import events as ev
from workbench_sessions.projection import Projection

SUMMARY_KINDS = frozenset(
    (
        ev.SessionOpened,
        ev.EngineStarted,
        ev.PhaseChanged,
        ev.SessionClosed,
        ev.VerdictReached,
        ev.HumanAccepted,
        ev.HumanRejected,
        ev.DecisionUndone,
        ev.BudgetSpent,
    )
)


class Summary(Struct, frozen=True):
    """`best_speedup` is a ratio; `at_s` is the last event's time, unix seconds."""

    session_id: str = ""
    name: str = ""
    task: str = ""
    title: str = ""
    policy: str = ""
    backend: str = ""
    phase: str = "starting"
    outcome: str = ""
    closed: bool = False
    best: str | None = None
    best_speedup: float | None = None
    best_confirmed: bool = False
    evaluations: int = 0
    candidates: int = 0
    accepted: int = 0
    opened_at_s: float = 0.0
    at_s: float = 0.0
    seq: int = 0


def summary_of(p: Projection) -> Summary:
    best = p.candidates.get(p.best) if p.best is not None else None
    h = p.header
    return Summary(
        session_id=h.session_id,
        name=h.name,
        task=h.task.name if h.task else "",
        title=h.task.title if h.task else "",
        policy=h.policy,
        backend=h.backend,
        phase=h.phase,
        outcome=h.outcome,
        closed=h.closed,
        best=p.best,
        best_speedup=best.speedup if best else None,
        best_confirmed=best.confirmed if best else False,
        evaluations=p.evaluations,
        candidates=p.counts.proposed,
        accepted=p.counts.accepted,
        opened_at_s=h.opened_at_s,
        at_s=p.at_s,
        seq=p.seq,
    )
