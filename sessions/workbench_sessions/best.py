"""Which candidate is called best, and the curve of it.

Eligible is a candidate whose present verdict is FASTER with a speedup and which no person rejected. Confirmed ones go
before unconfirmed ones, whatever the numbers: a fresh process has not yet repeated an unconfirmed one. Among equals
the higher speedup wins, then the one proposed first. So a better number that waits for its confirmation does not
displace a confirmed best, and a rejection, an undo or a new verdict can bring back any earlier candidate.

The curve gets a point whenever the best or its speedup changes. It falls only where a new measurement or a person
lowered it; where nothing eligible is left it returns to 1.0, the reference itself, with an empty candidate id.
"""

from __future__ import annotations

from workbench_sessions.events import Stamped
from workbench_sessions.projection import BestPoint, Candidate, Mark, Projection

Rank = tuple[bool, float, int]


def rank(row: Candidate) -> Rank | None:
    """Order of candidates, higher is better; None when `row` cannot be best."""
    if row.verdict != "FASTER" or row.speedup is None or row.decision == "rejected":
        return None
    return (row.confirmed, row.speedup, -row.proposed_seq)


def consider(p: Projection, s: Stamped, changed: str) -> None:
    """Brings `best`, its curve and its marks up to date after one candidate's row changed."""
    row = p.candidates[changed]
    mine = rank(row)
    if p.best is None:
        winner = row if mine is not None else None
    elif p.best == changed:
        winner = _search(p)
    else:
        holder = p.candidates[p.best]
        held = rank(holder)
        winner = row if mine is not None and (held is None or mine > held) else holder
    _set(p, s, winner)


def _search(p: Projection) -> Candidate | None:
    best: Candidate | None = None
    best_rank: Rank | None = None
    for row in p.candidates.values():
        if row.verdict != "FASTER":
            continue
        mine = rank(row)
        if mine is not None and (best_rank is None or mine > best_rank):
            best, best_rank = row, mine
    return best


def _set(p: Projection, s: Stamped, winner: Candidate | None) -> None:
    name = winner.id if winner is not None else None
    speedup = winner.speedup if winner is not None and winner.speedup is not None else 1.0
    last = p.best_curve[-1] if p.best_curve else None
    if last is None and winner is None:
        return
    if last is not None and last.candidate == (name or "") and last.speedup == speedup:
        p.best = name
        return
    if winner is not None and name != p.best:
        confirmed = "" if winner.confirmed else " (unconfirmed)"
        p.marks.append(Mark(seq=s.seq, at_s=s.at_s, kind="best", text=f"{name} {speedup:.3g}×{confirmed}"))
    p.best = name
    p.best_curve.append(
        BestPoint(
            at_s=s.at_s,
            seq=s.seq,
            evaluations=p.evaluations,
            speedup=speedup,
            candidate=name or "",
            tokens=p.spent_tokens,
            money=p.spent_money,
        )
    )
