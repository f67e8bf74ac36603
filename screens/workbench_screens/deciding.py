"""What a person decides: accept, reject, undo, pin, and the steering of the run."""

from __future__ import annotations

from workbench_screens import asking, words
from workbench_screens.actions import NEEDS
from workbench_screens.bars import budget
from workbench_screens.dialogs import BudgetDialog, ConfirmDialog, Decision, DecisionDialog
from workbench_screens.shell import DeskApp
from workbench_screens.telling import AnswerDialog, Draft, SteerDialog, Steering
from workbench_sessions.commands import (
    Accept,
    AnswerPrompt,
    Pause,
    Pin,
    Reject,
    Resume,
    SetBudget,
    SetMode,
    Steer,
    Stop,
    UndoDecision,
)
from workbench_sessions.events import Budget
from workbench_sessions.projection import Candidate


def facts(candidate: Candidate) -> list[str]:
    """What one should know before deciding, and what speaks against it."""
    number, _ = words.speedup(candidate)
    out = [f"{candidate.verdict}  {number}  {candidate.pairs} pairs  by {words.origin(candidate)}"]
    if candidate.verdict == "CHEATING":
        out.append("it was caught cheating: the number is not a speedup")
    elif candidate.verdict != "FASTER":
        out.append("it is not refereed as faster than the reference")
    elif not candidate.confirmed:
        out.append("not yet confirmed in a fresh process")
    if candidate.findings:
        out.append(f"{candidate.findings} finding{'s' if candidate.findings > 1 else ''}: read them in the detail")
    return out


class DecidingApp(DeskApp):
    def action_accept(self) -> None:
        self._decide("accept", accept=True)

    def action_reject(self) -> None:
        self._decide("reject", accept=False)

    def _decide(self, action: str, accept: bool) -> None:
        shown = self.desk.shown()
        if self.refused(action) or shown is None:
            return
        name = shown.id

        def answered(decision: Decision | None) -> None:
            # The session may have moved on while the person thought.
            if decision is None or self.refused(action):
                return
            person = self.desk.person
            sent = self.send(
                Accept(name, decision.reason, person) if decision.accept else Reject(name, decision.reason, person)
            )
            if sent:
                self.tell(f"{name}: {'accept' if decision.accept else 'reject'} sent")

        self.push_screen(DecisionDialog(name, accept, facts(shown)), answered)

    def action_undo(self) -> None:
        shown = self.desk.shown()
        if not self.refused("undo") and shown is not None:
            self.send(UndoDecision(shown.id, self.desk.person))

    def action_pin(self) -> None:
        shown = self.desk.shown()
        if not self.refused("pin") and shown is not None:
            self.send(Pin(shown.id, not shown.pinned))

    def action_mode(self) -> None:
        if self.refused("mode"):
            return
        mode = self.desk.projection.header.mode
        if self.send(SetMode("review" if mode == "auto" else "auto")):
            self.tell(
                "review mode asked for: candidates will wait for you"
                if mode == "auto"
                else "auto mode asked for: candidates no longer wait"
            )

    def action_budget(self) -> None:
        if self.refused("budget"):
            return
        p = self.desk.projection

        def answered(caps: Budget | None) -> None:
            if caps is not None and not self.refused("budget"):
                self.send(SetBudget(caps))

        self.push_screen(BudgetDialog(p.header.budget, budget(p)), answered)

    def action_stop(self) -> None:
        if self.refused("stop"):
            return

        def answered(yes: bool | None) -> None:
            if yes and not self.refused("stop"):
                self.send(Stop(f"stopped by {self.desk.person or 'a person'}"))

        text = "The run ends after what is in flight; the session stays and can be resumed."
        self.push_screen(ConfirmDialog("Stop the run?", text), answered)

    def action_steer(self) -> None:
        if self.refused("steer"):
            return
        p = self.desk.projection

        def answered(said: Steering | None) -> None:
            if said is not None and not self.refused("steer") and self.send(Steer(said.text, said.replace)):
                self.tell("the next prompts carry it" if said.text else "the next prompts carry nothing more")

        reasons = [f"{c.id} {c.decision}: {c.decision_reason}" for c in asking.reasons(p)]
        self.push_screen(SteerDialog(p.header.steering, reasons), answered)

    def action_answer(self) -> None:
        """A prompt of policy `manual`, answered here."""
        opened = self.desk.opened()
        if self.refused("answer") or opened is None:
            return
        name = opened.prompt

        def answered(draft: Draft | None) -> None:
            if draft is None:
                return
            self.desk.drafts[name] = draft.text
            if not draft.send or self.refused("answer"):
                return
            if self.send(AnswerPrompt(name, draft.text, self.desk.person)):
                self.desk.drafts.pop(name, None)
                self.tell(f"answer to {name} sent")

        self.push_screen(AnswerDialog(name, self.desk.drafts.get(name, "")), answered)

    def pause_engine(self) -> None:
        """Space while live."""
        reason = NEEDS["engine"](self.desk)
        if reason is not None:
            self.notify(reason, title="Pause: not now", severity="warning", markup=False)
            return
        paused = self.desk.projection.header.phase == "paused"
        self.send(Resume() if paused else Pause())
