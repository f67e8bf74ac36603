"""One line of the log for the events that a person wants to read in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench_sessions import events as ev
from workbench_sessions.events import Event, Stamped
from workbench_sessions.projection import LogLine

Said = tuple[str, str] | None
"""(level, text); levels: "info", "verdict", "person", "warning", "cheat"."""


def line_of(stamped: Stamped) -> LogLine | None:
    """The line for one event, None for the many that are shown elsewhere."""
    say = _SAY.get(type(stamped.event))
    said = say(stamped.event) if say is not None else None
    if said is None:
        return None
    return LogLine(seq=stamped.seq, at_s=stamped.at_s, level=said[0], text=" ".join(said[1].split())[:500])


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _by(person: str) -> str:
    return f" by {person}" if person else ""


def _verdict(e: ev.VerdictReached) -> Said:
    text = f"{e.candidate} {e.verdict}"
    if e.speedup is not None:
        text += f" {e.speedup:.3g}×"
    if e.lower is not None and e.upper is not None:
        text += f" [{e.lower:.3g} {e.upper:.3g}]"
    if e.confirmed:
        text += " confirmed"
    return ("cheat" if e.verdict == "CHEATING" else "verdict"), text + _because(e.reason)


def _finding(e: ev.FindingRaised) -> Said:
    return e.severity, f"{e.candidate} {e.code}: {e.text}"


def _budget(e: ev.BudgetChanged) -> Said:
    parts = {"evaluations": e.budget.evaluations, "s": e.budget.seconds, "tokens": e.budget.tokens}
    parts |= {"money": e.budget.money, "requests": e.budget.requests}
    said = ", ".join(f"{value:g} {unit}" for unit, value in parts.items() if value is not None)
    return "person", f"budget: {said or 'no cap'}"


def _policy(e: ev.PolicyUpdated) -> Said:
    # Of a policy that never learns, a line a step would say nothing.
    told = e.skipped and e.skipped != ev.DOES_NOT_LEARN
    return ("info", f"policy step {e.step} skipped: {e.skipped}") if told else None


def _floor(e: ev.FloorMeasured) -> Said:
    noisy = "; too noisy to judge" if e.too_noisy else ""
    return ("warning" if e.too_noisy else "info"), f"{e.device} A/A floor ±{e.delta:.2%}{noisy}"


def _response(e: ev.ResponseReceived) -> Said:
    return ("info", f"{e.prompt}: no candidate: {e.problem}") if e.problem else None


def _retry(e: ev.RetryScheduled) -> Said:
    who = e.prompt or "the policy"
    of = f", try {e.attempt + 1} of {e.attempts + 1}" if e.attempts else ""
    return "info", f"{who}: asked again in {e.wait_s:.3g} s{of}: {e.reason}"


def _opinion(e: ev.OpinionReceived) -> Said:
    if e.problem:
        return "info", f"{e.candidate}: the judge's model gave no answer: {e.problem}"
    return "info", f"{e.candidate}: the judge's model was asked ({e.tokens_in + e.tokens_out} tokens)"


def _server(e: ev.ServerReported) -> Said:
    level = "warning" if e.state == "failed" else "info"
    return level, f"{e.server} {e.state}{f' ({e.seconds:.0f} s)' if e.seconds >= 1.0 else ''}: {e.text}"


def _unknown(e: ev.UnknownEvent) -> Said:
    if e.kind in ev.KINDS:
        return "warning", f"unreadable event {e.kind}: {e.body[:200]}"
    return "warning", f"event of an unknown kind {e.kind} (a newer workbench wrote it): {e.body[:200]}"


_SAY: dict[type[Event], Callable[[Any], Said]] = {
    ev.SessionOpened: lambda e: ("info", f"session {e.name}: {e.task.name} on {e.backend}, policy {e.policy}"),
    ev.EngineStarted: lambda e: ("info", f"engine {'resumed' if e.resumed else 'started'} (pid {e.pid})"),
    ev.DeviceSeen: lambda e: ("info", f"device {e.device}: {e.name}"),
    ev.FloorMeasured: _floor,
    ev.FindingRaised: _finding,
    ev.VerdictReached: _verdict,
    ev.ResponseReceived: _response,
    ev.RetryScheduled: _retry,
    ev.OpinionReceived: _opinion,
    ev.ServerReported: _server,
    ev.HumanAccepted: lambda e: ("person", f"{e.candidate} accepted{_by(e.person)}{_because(e.reason)}"),
    ev.HumanRejected: lambda e: ("person", f"{e.candidate} rejected{_by(e.person)}{_because(e.reason)}"),
    ev.DecisionUndone: lambda e: ("person", f"{e.candidate}: decision undone{_by(e.person)}"),
    ev.CandidatePinned: lambda e: ("person", f"{e.candidate} {'pinned' if e.pinned else 'unpinned'}"),
    ev.ReviewRequested: lambda e: ("info", f"{e.candidate} waits for review"),
    ev.IslandMigrated: lambda e: ("info", f"{e.candidate} migrated from island {e.source} to {e.target}"),
    ev.MemoryRevised: lambda e: ("info", "search memory revised"),
    ev.PolicyUpdated: _policy,
    ev.BudgetChanged: _budget,
    ev.CapReached: lambda e: ("info", f"cap on {e.cap} reached: {e.text}"),
    ev.ModeChanged: lambda e: ("person", f"mode: {e.mode}"),
    ev.PhaseChanged: lambda e: ("info", f"{e.phase}{_because(e.reason)}"),
    ev.SteeringGiven: lambda e: ("person", f"steering{' replaced' if e.replace else ''}: {e.text}"),
    ev.CommandRefused: lambda e: ("warning", f"command {e.command} refused: {e.reason}"),
    ev.WarningRaised: lambda e: ("warning", e.text + (f" ({e.remedy})" if e.remedy else "")),
    ev.SessionClosed: lambda e: ("info", f"closed ({e.outcome}){_because(e.reason)}"),
    ev.UnknownEvent: _unknown,
}
