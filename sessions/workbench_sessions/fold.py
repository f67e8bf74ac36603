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
- **Engine restarts and the end.** Lanes end where the log went silent, and candidates that were in flight are
  "proposed" again ("done" when they had a verdict). Prompts nobody waits for any more are "lost".
- **Bounds.** Telemetry, lanes, log, pairs and the heavy half of details keep their newest entries; the file has all.
  They are trimmed a block at a time, which lets checkpoints share the blocks that did not change.
- A kind nobody knows is counted and logged; what is said of a candidate nobody proposed changes no row. Neither is
  ever an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from workbench_sessions import candidate_fold, loglines, prompt_fold
from workbench_sessions import events as ev
from workbench_sessions.bounds import LANE_SPANS_KEPT, LOG_LINES_KEPT, TELEMETRY_KEPT, append_bounded
from workbench_sessions.events import Event, Stamped
from workbench_sessions.projection import (
    Device,
    Header,
    LaneSpan,
    PolicyStep,
    Projection,
    Sample,
)
from workbench_sessions.tallies import add_mark, put_row

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
        append_bounded(projection.log, line, LOG_LINES_KEPT)
    projection.last_event_at_s = stamped.at_s


def fold_all(projection: Projection, stamped: Iterable[Stamped]) -> Projection:
    """Applies events in order; returns the same projection."""
    for one in stamped:
        fold(projection, one)
    return projection


def _device(p: Projection, name: str) -> Device:
    return p.devices.get(name) or Device(id=name, kind="", name=name)


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
    p.header = replace(p.header, engine_pid=e.pid, closed=False, outcome="", phase="starting", phase_reason="", cap="")
    p.wait = None
    if not e.resumed:
        return
    _silence_lanes(p, p.last_event_at_s)
    _put_back(p, s)
    add_mark(p, s, "phase", "resumed")


def _put_back(p: Projection, s: Stamped) -> None:
    for row in [row for row in p.candidates.values() if row.stage in _IN_FLIGHT]:
        put_row(p, s, row, replace(row, stage="proposed" if row.verdict is None else "done", device=None))
    prompt_fold.lose_open(p, s)


def _silence_lanes(p: Projection, at_s: float) -> None:
    for name, device in p.devices.items():
        spans = p.lanes.get(name)
        if spans and spans[-1].end_s is None:
            spans[-1] = replace(spans[-1], end_s=max(at_s, spans[-1].start_s))
        if device.activity != "idle":
            p.devices[name] = replace(device, activity="idle", candidate=None)


def _phase(p: Projection, s: Stamped, e: ev.PhaseChanged) -> None:
    p.header = replace(p.header, phase=e.phase, phase_reason=e.reason)
    p.wait = None
    add_mark(p, s, "phase", f"{e.phase} ({e.reason})" if e.reason else e.phase)


def _closed(p: Projection, s: Stamped, e: ev.SessionClosed) -> None:
    p.header = replace(p.header, closed=True, outcome=e.outcome, phase="closed", phase_reason=e.reason)
    _silence_lanes(p, s.at_s)
    _put_back(p, s)
    add_mark(p, s, "phase", f"closed: {e.outcome}")


def _mode(p: Projection, s: Stamped, e: ev.ModeChanged) -> None:
    p.header = replace(p.header, mode=e.mode)


def _budget(p: Projection, s: Stamped, e: ev.BudgetChanged) -> None:
    p.header = replace(p.header, budget=e.budget, cap="")


def _cap(p: Projection, s: Stamped, e: ev.CapReached) -> None:
    p.header = replace(p.header, cap=e.cap)


def _spent(p: Projection, s: Stamped, e: ev.BudgetSpent) -> None:
    p.evaluations, p.spent_seconds, p.spent_tokens, p.spent_money = e.evaluations, e.seconds, e.tokens, e.money
    if e.requests is not None:
        p.spent_requests = e.requests


def _steering(p: Projection, s: Stamped, e: ev.SteeringGiven) -> None:
    before = "" if e.replace else p.header.steering
    p.header = replace(p.header, steering=f"{before}\n{e.text}" if before else e.text)


def _warning(p: Projection, s: Stamped, e: ev.WarningRaised) -> None:
    add_mark(p, s, "warning", e.text)


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
    append_bounded(p.telemetry.setdefault(e.device, []), sample, TELEMETRY_KEPT)


def _activity(p: Projection, s: Stamped, e: ev.ActivityChanged) -> None:
    spans = p.lanes.setdefault(e.device, [])
    if spans and spans[-1].end_s is None:
        spans[-1] = replace(spans[-1], end_s=s.at_s)
    append_bounded(spans, LaneSpan(activity=e.activity, candidate=e.candidate, start_s=s.at_s), LANE_SPANS_KEPT)
    p.devices[e.device] = replace(_device(p, e.device), activity=e.activity, candidate=e.candidate)


def _floor(p: Projection, s: Stamped, e: ev.FloorMeasured) -> None:
    p.devices[e.device] = replace(_device(p, e.device), delta=e.delta, too_noisy=e.too_noisy)


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
        tokens=p.spent_tokens,
        money=p.spent_money,
    )
    p.policy_steps.append(step)


def _migrated(p: Projection, s: Stamped, e: ev.IslandMigrated) -> None:
    p.migrations.append((e.source, e.target, e.candidate, s.at_s))


def _memory(p: Projection, s: Stamped, e: ev.MemoryRevised) -> None:
    p.memory = e.text


_HANDLERS: dict[type[Event], Callable[[Projection, Stamped, Any], None]] = {
    **candidate_fold.HANDLERS,
    **prompt_fold.HANDLERS,
    ev.SessionOpened: _opened,
    ev.EngineStarted: _engine_started,
    ev.PhaseChanged: _phase,
    ev.SessionClosed: _closed,
    ev.ModeChanged: _mode,
    ev.BudgetChanged: _budget,
    ev.BudgetSpent: _spent,
    ev.CapReached: _cap,
    ev.SteeringGiven: _steering,
    ev.WarningRaised: _warning,
    ev.UnknownEvent: _unknown,
    ev.DeviceSeen: _device_seen,
    ev.TelemetrySampled: _telemetry,
    ev.ActivityChanged: _activity,
    ev.FloorMeasured: _floor,
    ev.PolicyUpdated: _policy,
    ev.IslandMigrated: _migrated,
    ev.MemoryRevised: _memory,
}
