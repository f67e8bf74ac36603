"""The one way from events to what is shown: `fold(projection, stamped)`.

Rules, so that everybody counts alike:

- **Stages.** A candidate is in exactly one stage. `StageStarted` sets it, a verdict sets it to "done", and a later
  `StageStarted` (a confirmation run) takes it back out of "done" while the earlier verdict stays until the new one.
  `Counts.timing` holds the stages "time" and "judge". Tallies follow the change of the row, so no order of events can
  make them drift.
- **A verdict replaces the earlier one whole**, numbers included: after a confirmation only the fresh run's numbers
  are left. What is no measurement (`reward`, `evaluation`) survives a later verdict that does not carry it.
- **Decisions.** The last one counts. `ReviewRequested` never overrides a decision. Undoing leaves no decision at all;
  an engine that still wants an answer asks again.
- **Best**: see `workbench_sessions.best`.
- **Engine restarts.** Lanes end where the log went silent, and candidates that were in flight are "proposed" again.
- **Bounds.** Telemetry, lanes, log, pairs and the heavy half of details keep their newest entries; the file has all.
  They are trimmed a block at a time, which lets checkpoints share the blocks that did not change.
- A candidate nobody proposed and a kind nobody knows are logged, never an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from msgspec.structs import replace

from workbench_sessions import events as ev
from workbench_sessions import loglines
from workbench_sessions.best import consider
from workbench_sessions.events import Event, Stamped
from workbench_sessions.projection import (
    Candidate,
    Details,
    Device,
    Finding,
    Header,
    LaneSpan,
    Mark,
    PairSeries,
    PolicyStep,
    Projection,
    Sample,
)

BLOCK = 128
"""Elements a checkpoint block holds; bounded lists shrink by whole blocks, so the rest keeps its place in its block."""

TELEMETRY_KEPT = 10 * BLOCK
LANE_SPANS_KEPT = 16 * BLOCK
LOG_LINES_KEPT = 4 * BLOCK
DETAILS_WHOLE = 2 * BLOCK
"""So many newest candidates keep build log, checks and feedback in memory; `details(candidate)` reads the rest."""

PAIR_BLOCK = 16
PAIR_SERIES_KEPT = 64
PAIRS_IN_SERIES = 4096

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
_IN_FLIGHT = frozenset(("build", "verify", "time", "judge"))


def fold(projection: Projection, stamped: Stamped) -> None:
    """Applies one event. Mutates `projection` only; the structs in it are replaced, never changed."""
    event = stamped.event
    projection.seq = stamped.seq
    projection.at_s = stamped.at_s
    handler = _HANDLERS.get(type(event))
    if handler is not None:
        handler(projection, stamped, event)
    line = loglines.line_of(stamped)
    if line is not None:
        _append(projection.log, line, LOG_LINES_KEPT)
    projection.last_event_at_s = stamped.at_s


def fold_all(projection: Projection, stamped: Iterable[Stamped]) -> Projection:
    """Applies events in order; returns the same projection."""
    for one in stamped:
        fold(projection, one)
    return projection


def _append(items: list[Any], item: Any, kept: int) -> None:
    items.append(item)
    if len(items) >= kept + BLOCK:
        del items[:BLOCK]


def _mark(p: Projection, s: Stamped, kind: str, text: str) -> None:
    p.marks.append(Mark(seq=s.seq, at_s=s.at_s, kind=kind, text=text))


def _put(p: Projection, s: Stamped, old: Candidate, new: Candidate) -> None:
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


def _device(p: Projection, name: str) -> Device:
    return p.devices.get(name) or Device(id=name, kind="", name=name)


def _detail(p: Projection, candidate: str) -> Details | None:
    return p.details.get(candidate)


# The session and its engine


def _opened(p: Projection, s: Stamped, e: ev.SessionOpened) -> None:
    p.header = Header(
        session_id=e.session_id,
        name=e.name,
        task=e.task,
        backend=e.backend,
        policy=e.policy,
        seed=e.seed,
        budget=e.budget,
        mode=e.mode,
        islands=e.islands,
        sandbox_level=e.sandbox_level,
        host=e.host,
        version=e.version,
        output_dir=e.output_dir,
        settings=e.settings,
        engine_pid=p.header.engine_pid,
        opened_at_s=s.at_s,
    )


def _engine_started(p: Projection, s: Stamped, e: ev.EngineStarted) -> None:
    p.header = replace(p.header, engine_pid=e.pid, closed=False, outcome="", phase="starting", phase_reason="")
    if not e.resumed:
        return
    _silence_lanes(p, p.last_event_at_s)
    for row in [row for row in p.candidates.values() if row.stage in _IN_FLIGHT]:
        _put(p, s, row, replace(row, stage="proposed" if row.verdict is None else "done", device=None))
    _mark(p, s, "phase", "resumed")


def _silence_lanes(p: Projection, at_s: float) -> None:
    for name, device in p.devices.items():
        spans = p.lanes.get(name)
        if spans and spans[-1].end_s is None:
            spans[-1] = replace(spans[-1], end_s=max(at_s, spans[-1].start_s))
        if device.activity != "idle":
            p.devices[name] = replace(device, activity="idle", candidate=None)


def _phase(p: Projection, s: Stamped, e: ev.PhaseChanged) -> None:
    p.header = replace(p.header, phase=e.phase, phase_reason=e.reason)
    _mark(p, s, "phase", f"{e.phase} ({e.reason})" if e.reason else e.phase)


def _closed(p: Projection, s: Stamped, e: ev.SessionClosed) -> None:
    p.header = replace(p.header, closed=True, outcome=e.outcome, phase="closed", phase_reason=e.reason)
    _silence_lanes(p, s.at_s)
    _mark(p, s, "phase", f"closed: {e.outcome}")


def _mode(p: Projection, s: Stamped, e: ev.ModeChanged) -> None:
    p.header = replace(p.header, mode=e.mode)


def _budget(p: Projection, s: Stamped, e: ev.BudgetChanged) -> None:
    p.header = replace(p.header, budget=e.budget)


def _spent(p: Projection, s: Stamped, e: ev.BudgetSpent) -> None:
    p.evaluations, p.spent_seconds, p.spent_tokens, p.spent_money = e.evaluations, e.seconds, e.tokens, e.money


def _steering(p: Projection, s: Stamped, e: ev.SteeringGiven) -> None:
    before = "" if e.replace else p.header.steering
    p.header = replace(p.header, steering=f"{before}\n{e.text}" if before else e.text)


def _warning(p: Projection, s: Stamped, e: ev.WarningRaised) -> None:
    _mark(p, s, "warning", e.text)


def _unknown(p: Projection, s: Stamped, e: ev.UnknownEvent) -> None:
    p.unknown_events += 1


# Devices


def _device_seen(p: Projection, s: Stamped, e: ev.DeviceSeen) -> None:
    p.devices[e.device] = replace(
        _device(p, e.device), kind=e.kind, name=e.name, cores=e.cores, memory_bytes=e.memory_bytes, note=e.note
    )


def _telemetry(p: Projection, s: Stamped, e: ev.TelemetrySampled) -> None:
    sample = Sample(
        s.at_s,
        e.utilisation,
        e.memory_used_bytes,
        e.memory_total_bytes,
        e.power_w,
        e.clock_hz,
        e.temperature_c,
        e.throttle,
        e.load,
    )
    _append(p.telemetry.setdefault(e.device, []), sample, TELEMETRY_KEPT)


def _activity(p: Projection, s: Stamped, e: ev.ActivityChanged) -> None:
    spans = p.lanes.setdefault(e.device, [])
    if spans and spans[-1].end_s is None:
        spans[-1] = replace(spans[-1], end_s=s.at_s)
    _append(spans, LaneSpan(activity=e.activity, candidate=e.candidate, start_s=s.at_s), LANE_SPANS_KEPT)
    p.devices[e.device] = replace(_device(p, e.device), activity=e.activity, candidate=e.candidate)


def _floor(p: Projection, s: Stamped, e: ev.FloorMeasured) -> None:
    p.devices[e.device] = replace(_device(p, e.device), delta=e.delta, too_noisy=e.too_noisy)


# Candidates


def _proposed(p: Projection, s: Stamped, e: ev.CandidateProposed) -> None:
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
    known = p.candidates.get(e.candidate)
    if known is not None:
        # Proposed twice (an engine that resumed): the row starts afresh, in its old place.
        _put(p, s, known, row)
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


def _stage(p: Projection, s: Stamped, e: ev.StageStarted) -> None:
    row = p.candidates.get(e.candidate)
    if row is None:
        return
    if e.stage == "time":
        p.pairs.pop(e.candidate, None)
    _put(p, s, row, replace(row, stage=e.stage, device=e.device or None))


def _built(p: Projection, s: Stamped, e: ev.BuildFinished) -> None:
    detail = _detail(p, e.candidate)
    if detail is not None:
        p.details[e.candidate] = replace(
            detail,
            build_s=e.seconds,
            build_cached=e.cached,
            build_log=e.log,
            feedback=e.feedback or detail.feedback,
        )


def _verified(p: Projection, s: Stamped, e: ev.VerifyFinished) -> None:
    detail = _detail(p, e.candidate)
    if detail is not None:
        p.details[e.candidate] = replace(
            detail, verify_s=e.seconds, checks=e.checks, feedback=e.feedback or detail.feedback
        )


def _timed(p: Projection, s: Stamped, e: ev.PairsTimed) -> None:
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
    _put(p, s, row, replace(row, pairs=len(series.reference_s)))


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


def _finding(p: Projection, s: Stamped, e: ev.FindingRaised) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None:
        _put(p, s, row, replace(row, findings=row.findings + 1))
        detail = p.details[e.candidate]
        finding = Finding(code=e.code, severity=e.severity, text=e.text, evidence=e.evidence)
        p.details[e.candidate] = replace(detail, findings=[*detail.findings, finding])
    if e.severity == "cheat":
        _mark(p, s, "cheat", f"{e.candidate} {e.code}: {e.text}" if e.candidate else f"{e.code}: {e.text}")


def _verdict(p: Projection, s: Stamped, e: ev.VerdictReached) -> None:
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
    _put(p, s, row, new)
    if e.sandbox_level:
        p.details[e.candidate] = replace(p.details[e.candidate], sandbox_level=e.sandbox_level)
    consider(p, s, e.candidate)


# People


def _accepted(p: Projection, s: Stamped, e: ev.HumanAccepted) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None:
        _put(p, s, row, replace(row, decision="accepted", decision_reason=e.reason, accepted_path=e.path))
        consider(p, s, e.candidate)
    _mark(p, s, "accept", f"{e.candidate} accepted" + (f": {e.reason}" if e.reason else ""))


def _rejected(p: Projection, s: Stamped, e: ev.HumanRejected) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None:
        _put(p, s, row, replace(row, decision="rejected", decision_reason=e.reason, accepted_path=""))
        consider(p, s, e.candidate)
    _mark(p, s, "reject", f"{e.candidate} rejected" + (f": {e.reason}" if e.reason else ""))


def _undone(p: Projection, s: Stamped, e: ev.DecisionUndone) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None:
        _put(p, s, row, replace(row, decision=None, decision_reason="", accepted_path=""))
        consider(p, s, e.candidate)


def _review(p: Projection, s: Stamped, e: ev.ReviewRequested) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None and row.decision is None:
        _put(p, s, row, replace(row, decision="review"))


def _pinned(p: Projection, s: Stamped, e: ev.CandidatePinned) -> None:
    row = p.candidates.get(e.candidate)
    if row is not None:
        _put(p, s, row, replace(row, pinned=e.pinned))


# Policy and search


def _policy(p: Projection, s: Stamped, e: ev.PolicyUpdated) -> None:
    step = PolicyStep(
        at_s=s.at_s,
        seq=s.seq,
        step=e.step,
        group=e.group,
        evaluations=e.evaluations,
        group_mean=e.group_mean,
        group_std=e.group_std,
        success_rate=e.success_rate,
        best=e.best,
        loss=e.loss,
        entropy=e.entropy,
        kl=e.kl,
        grad_norm=e.grad_norm,
    )
    p.policy_steps.append(step)


def _migrated(p: Projection, s: Stamped, e: ev.IslandMigrated) -> None:
    p.migrations.append((e.source, e.target, e.candidate, s.at_s))


def _memory(p: Projection, s: Stamped, e: ev.MemoryRevised) -> None:
    p.memory = e.text


_HANDLERS: dict[type[Event], Callable[[Projection, Stamped, Any], None]] = {
    ev.SessionOpened: _opened,
    ev.EngineStarted: _engine_started,
    ev.PhaseChanged: _phase,
    ev.SessionClosed: _closed,
    ev.ModeChanged: _mode,
    ev.BudgetChanged: _budget,
    ev.BudgetSpent: _spent,
    ev.SteeringGiven: _steering,
    ev.WarningRaised: _warning,
    ev.UnknownEvent: _unknown,
    ev.DeviceSeen: _device_seen,
    ev.TelemetrySampled: _telemetry,
    ev.ActivityChanged: _activity,
    ev.FloorMeasured: _floor,
    ev.CandidateProposed: _proposed,
    ev.StageStarted: _stage,
    ev.BuildFinished: _built,
    ev.VerifyFinished: _verified,
    ev.PairsTimed: _timed,
    ev.FindingRaised: _finding,
    ev.VerdictReached: _verdict,
    ev.HumanAccepted: _accepted,
    ev.HumanRejected: _rejected,
    ev.DecisionUndone: _undone,
    ev.ReviewRequested: _review,
    ev.CandidatePinned: _pinned,
    ev.PolicyUpdated: _policy,
    ev.IslandMigrated: _migrated,
    ev.MemoryRevised: _memory,
}
