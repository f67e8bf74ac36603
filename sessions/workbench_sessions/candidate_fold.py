"""The part of the fold that changes candidates: their stages, results, pairs, verdicts and decisions.

The rules are in `workbench_sessions.fold`. Every function here applies one kind of event.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from msgspec.structs import replace

from workbench_sessions import events as ev
from workbench_sessions.best import consider
from workbench_sessions.bounds import BLOCK, DETAILS_WHOLE, PAIR_BLOCK, PAIR_SERIES_KEPT, PAIRS_IN_SERIES
from workbench_sessions.events import Event, Stamped
from workbench_sessions.projection import Candidate, Details, Finding, PairSeries, Projection
from workbench_sessions.prompt_fold import came_of
from workbench_sessions.tallies import add_mark, put_row


def proposed(p: Projection, s: Stamped, e: ev.CandidateProposed) -> None:
    row = Candidate(
        id=e.candidate,
        kind=e.kind,
        source_sha256=e.source_sha256,
        origin=e.origin,
        island=e.island,
        generation=e.generation,
        parents=e.parents,
        proposed_seq=s.seq,
        proposed_at_s=s.at_s,
        group=e.group,
        changed_seq=s.seq,
    )
    details = Details(point=e.point, exemplars=e.exemplars, note=e.note)
    came_of(p, s, e)
    known = p.candidates.get(e.candidate)
    if known is not None:
        # Proposed twice (an engine that resumed): the row starts afresh, in its old place.
        put_row(p, s, known, row)
        p.details[e.candidate] = details
        p.pairs.pop(e.candidate, None)
        consider(p, s, e.candidate)
        return
    p.candidates[e.candidate] = row
    p.details[e.candidate] = details
    p.counts = replace(p.counts, proposed=p.counts.proposed + 1)
    count = len(p.details)
    if count % BLOCK == 0 and count > DETAILS_WHOLE:
        _slim_details(p, count - DETAILS_WHOLE - BLOCK, count - DETAILS_WHOLE)


def _slim_details(p: Projection, start: int, stop: int) -> None:
    for name in list(islice(p.details, start, stop)):
        p.details[name] = replace(p.details[name], build_log="", checks=[], feedback="")


def stage(p: Projection, s: Stamped, e: ev.StageStarted) -> None:
    row = p.candidates.get(e.candidate)
    if row is None:
        return
    if e.stage == "time":
        p.pairs.pop(e.candidate, None)
    put_row(p, s, row, replace(row, stage=e.stage, device=e.device or None))


def built(p: Projection, s: Stamped, e: ev.BuildFinished) -> None:
    detail = p.details.get(e.candidate)
    if detail is not None:
        p.details[e.candidate] = replace(
            detail,
            build_s=e.seconds,
            build_cached=e.cached,
            build_log=e.log,
            feedback=e.feedback or detail.feedback,
        )


def verified(p: Projection, s: Stamped, e: ev.VerifyFinished) -> None:
    detail = p.details.get(e.candidate)
    if detail is not None:
        p.details[e.candidate] = replace(
            detail, verify_s=e.seconds, checks=e.checks, feedback=e.feedback or detail.feedback
        )


def timed(p: Projection, s: Stamped, e: ev.PairsTimed) -> None:
    row = p.candidates.get(e.candidate)
    floor = e.phase == "floor" or row is None
    series = merged(p.current_pairs.get(e.device) if floor else p.pairs.get(e.candidate), e)
    p.current_pairs[e.device] = series
    if floor or row is None:
        return
    # The newest last, so that the first ones are the ones to drop.
    p.pairs.pop(e.candidate, None)
    p.pairs[e.candidate] = series
    if len(p.pairs) >= PAIR_SERIES_KEPT + PAIR_BLOCK:
        for name in list(islice(p.pairs, PAIR_BLOCK)):
            del p.pairs[name]
    put_row(p, s, row, replace(row, pairs=len(series.reference_s)))


def merged(before: PairSeries | None, e: ev.PairsTimed) -> PairSeries:
    """`before` with the batch at its end when both are of one run of pairs, else the batch alone."""
    reference, candidate = e.reference_s, e.candidate_s
    if (
        before is not None
        and before.candidate == e.candidate
        and before.device == e.device
        and before.phase == e.phase
        and before.threads == e.threads
        and before.calls == e.calls
    ):
        reference = [*before.reference_s, *reference][-PAIRS_IN_SERIES:]
        candidate = [*before.candidate_s, *candidate][-PAIRS_IN_SERIES:]
    return PairSeries(
        candidate=e.candidate,
        device=e.device,
        phase=e.phase,
        calls=e.calls,
        threads=e.threads,
        reference_s=reference,
        candidate_s=candidate,
    )


def finding(p: Projection, s: Stamped, e: ev.FindingRaised) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None:
        grave = e.severity in ("warning", "cheat")
        put_row(p, s, row, replace(row, findings=row.findings + grave))
        detail = p.details[e.candidate]
        finding = Finding(code=e.code, severity=e.severity, text=e.text, evidence=e.evidence)
        p.details[e.candidate] = replace(detail, findings=[*detail.findings, finding])
    if e.severity == "cheat":
        add_mark(p, s, "cheat", f"{e.candidate} {e.code}: {e.text}" if e.candidate else f"{e.code}: {e.text}")


def verdict(p: Projection, s: Stamped, e: ev.VerdictReached) -> None:
    if e.evaluation is not None:
        p.evaluations = max(p.evaluations, e.evaluation)
    row = p.candidates.get(e.candidate)
    if row is None:
        return
    new = replace(
        row,
        stage="done",
        device=None,
        verdict=e.verdict,
        speedup=e.speedup,
        lower=e.lower,
        upper=e.upper,
        pairs=e.pairs,
        reference_s=e.reference_s,
        candidate_s=e.candidate_s,
        delta=e.delta,
        confirmed=e.confirmed,
        threads_speedup=e.threads_speedup,
        roofline_fraction=e.roofline_fraction,
        reward=row.reward if e.reward is None else e.reward,
        reason=e.reason,
        evaluation=row.evaluation if e.evaluation is None else e.evaluation,
    )
    put_row(p, s, row, new)
    if e.sandbox_level:
        p.details[e.candidate] = replace(p.details[e.candidate], sandbox_level=e.sandbox_level)
    consider(p, s, e.candidate)


def accepted(p: Projection, s: Stamped, e: ev.HumanAccepted) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None:
        put_row(p, s, row, replace(row, decision="accepted", decision_reason=e.reason, accepted_path=e.path))
        consider(p, s, e.candidate)
    add_mark(p, s, "accept", f"{e.candidate} accepted" + (f": {e.reason}" if e.reason else ""))


def rejected(p: Projection, s: Stamped, e: ev.HumanRejected) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None:
        put_row(p, s, row, replace(row, decision="rejected", decision_reason=e.reason, accepted_path=""))
        consider(p, s, e.candidate)
    add_mark(p, s, "reject", f"{e.candidate} rejected" + (f": {e.reason}" if e.reason else ""))


def undone(p: Projection, s: Stamped, e: ev.DecisionUndone) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None:
        put_row(p, s, row, replace(row, decision=None, decision_reason="", accepted_path=""))
        consider(p, s, e.candidate)


def review(p: Projection, s: Stamped, e: ev.ReviewRequested) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None and row.decision is None:
        put_row(p, s, row, replace(row, decision="review"))


def pinned(p: Projection, s: Stamped, e: ev.CandidatePinned) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None:
        put_row(p, s, row, replace(row, pinned=e.pinned))


HANDLERS: dict[type[Event], Callable[[Projection, Stamped, Any], None]] = {
    ev.CandidateProposed: proposed,
    ev.StageStarted: stage,
    ev.BuildFinished: built,
    ev.VerifyFinished: verified,
    ev.PairsTimed: timed,
    ev.FindingRaised: finding,
    ev.VerdictReached: verdict,
    ev.HumanAccepted: accepted,
    ev.HumanRejected: rejected,
    ev.DecisionUndone: undone,
    ev.ReviewRequested: review,
    ev.CandidatePinned: pinned,
}
