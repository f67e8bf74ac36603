"""The desk where wishes arrive: each is granted with an event or refused with a reason, and never fatal."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from workbench_engine import decisions
from workbench_engine.conducting.archive import Archive
from workbench_engine.conducting.recorder import Recorder
from workbench_engine.policies.llm.by_hand import prompts_folder, put_answer
from workbench_sessions import commands as wish
from workbench_sessions import events as ev
from workbench_sessions.events import Event
from workbench_sessions.projection import Details


class Refused(Exception):
    """A wish that cannot be granted. `str()` is the reason, one line."""


class Controls(Protocol):
    """What of a running engine a person can turn. Each raises Refused when it cannot be done now."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self, reason: str) -> None: ...

    def submit(self, source: str, kind: str, parent: str | None, person: str, note: str) -> None: ...

    def changed(self) -> None:
        """Something that the run depends on (budget, mode, a decision) is now different in the projection."""
        ...


class Desk:
    """Handles commands over the recorder and the archive."""

    def __init__(self, recorder: Recorder, archive: Archive, controls: Controls, folder: Path) -> None:
        """`folder` receives accepted candidates."""
        self._recorder = recorder
        self._archive = archive
        self._controls = controls
        self._folder = folder

    def handle(self, number: int, command: wish.Command) -> None:
        """Grants or refuses one command. Raises SessionError only."""
        try:
            self._grant(command)
        except Refused as refusal:
            self._recorder.record([ev.CommandRefused(command=number, reason=str(refusal))])
        else:
            self._controls.changed()

    def _grant(self, command: wish.Command) -> None:
        match command:
            case wish.Accept():
                self._accept(command)
            case wish.Reject():
                self._reject(command)
            case wish.UndoDecision():
                self._undo(command)
            case wish.Pin(candidate=name, pinned=pinned):
                self._check(decisions.refuse_pin(self._recorder.projection.candidates.get(name), name))
                self._record(ev.CandidatePinned(candidate=name, pinned=pinned))
            case wish.Pause():
                self._controls.pause()
            case wish.Resume():
                self._controls.resume()
            case wish.Stop(reason=reason):
                self._controls.stop(reason)
            case wish.SetBudget(budget=budget):
                self._budget(budget)
            case wish.SetMode(mode=mode):
                self._mode(mode)
            case wish.SubmitSource():
                self._controls.submit(command.source, command.kind, command.parent, command.person, command.note)
            case wish.Steer(text=text, replace=replace):
                self._record(ev.SteeringGiven(text=text, replace=replace))
            case wish.AnswerPrompt():
                self._answer(command)
            case wish.UnreadableCommand(kind=kind, problem=problem):
                raise Refused(
                    f"{kind or 'a command'} cannot be read ({problem}); this engine may be older than the viewer"
                )
            case _:
                raise Refused(f"{type(command).__name__} is not known to this engine")

    def _accept(self, wanted: wish.Accept) -> None:
        projection = self._recorder.projection
        row = projection.candidates.get(wanted.candidate)
        self._check(decisions.refuse_accept(row, wanted.candidate))
        assert row is not None
        level = projection.details.get(row.id, Details()).sandbox_level or projection.header.sandbox_level
        try:
            path = decisions.write_accepted(
                self._folder,
                row,
                projection.header,
                level,
                self._recorder.source(row.source_sha256),
                wanted.person,
                wanted.reason,
            )
        except OSError as error:
            raise Refused(
                f"{row.id} cannot be written to {self._folder} ({error.strerror or error}); "
                "free or change the output folder and accept it again"
            ) from error
        self._archive.release(row.id)
        self._archive.restore(row.id)
        self._record(ev.HumanAccepted(candidate=row.id, reason=wanted.reason, path=str(path), person=wanted.person))

    def _reject(self, wanted: wish.Reject) -> None:
        row = self._recorder.projection.candidates.get(wanted.candidate)
        self._check(decisions.refuse_reject(row, wanted.candidate))
        assert row is not None
        self._take_back(row.accepted_path, row.source_sha256)
        self._archive.reject(row.id)
        self._record(ev.HumanRejected(candidate=row.id, reason=wanted.reason, person=wanted.person))

    def _undo(self, wanted: wish.UndoDecision) -> None:
        projection = self._recorder.projection
        row = projection.candidates.get(wanted.candidate)
        self._check(decisions.refuse_undo(row, wanted.candidate))
        assert row is not None
        self._take_back(row.accepted_path, row.source_sha256)
        self._archive.restore(row.id)
        events: list[Event] = [ev.DecisionUndone(candidate=row.id, person=wanted.person)]
        if projection.header.mode == "review" and row.verdict == "FASTER":
            self._archive.hold(row.id)
            events.append(ev.ReviewRequested(candidate=row.id))
        self._record(*events)

    def _take_back(self, path: str, source_sha256: str) -> None:
        if not path:
            return
        try:
            decisions.remove_accepted(Path(path), source_sha256)
        except OSError as error:
            raise Refused(f"{path} cannot be removed ({error.strerror or error}); remove it and try again") from error

    def _budget(self, budget: ev.Budget) -> None:
        caps = (budget.evaluations, budget.seconds, budget.tokens, budget.money)
        if any(cap is not None and not cap >= 0 for cap in caps):
            raise Refused("a budget cannot be negative; give 0 or more, or no cap")
        self._record(ev.BudgetChanged(budget=budget))

    def _mode(self, mode: ev.Mode) -> None:
        if mode == self._recorder.projection.header.mode:
            raise Refused(f"the mode is {mode} already")
        events: list[Event] = [ev.ModeChanged(mode=mode)]
        if mode == "auto":
            # Nobody needs to decide about these any more; who wants to, still can.
            self._archive.release_all()
            rows = self._recorder.projection.candidates.values()
            events += [ev.DecisionUndone(candidate=row.id) for row in rows if row.decision == "review"]
        self._record(*events)

    def _answer(self, wanted: wish.AnswerPrompt) -> None:
        p = self._recorder.projection
        row = p.requests.get(wanted.prompt)
        if p.header.policy != "manual":
            raise Refused(f"policy {p.header.policy} asks a model; start a run with --policy manual to answer by hand")
        if row is None or row.state != "waiting":
            raise Refused(f"{wanted.prompt} does not wait for an answer")
        if not wanted.text.strip():
            raise Refused(f"the answer to {wanted.prompt} is empty; write the code or the three sections")
        folder = prompts_folder(self._recorder.path)
        try:
            put_answer(folder, row.text_sha256, wanted.text)
        except OSError as error:
            raise Refused(f"the answer cannot be written to {folder} ({error.strerror or error})") from error

    def _record(self, *events: Event) -> None:
        self._recorder.record(events)

    @staticmethod
    def _check(refusal: str) -> None:
        if refusal:
            raise Refused(refusal)


class NothingRuns:
    """Controls of a session whose engine only answers decisions."""

    def pause(self) -> None:
        raise Refused("nothing runs; resume the session first")

    def resume(self) -> None:
        raise Refused("this engine only answers decisions; start one that runs the session")

    def stop(self, reason: str) -> None:
        raise Refused("nothing runs")

    def submit(self, source: str, kind: str, parent: str | None, person: str, note: str) -> None:
        raise Refused("nothing runs that could judge it; resume the session, then save the file again")

    def changed(self) -> None:
        pass
