"""From a candidate's name to a fact in the archive: a job is made of it, run, paid, and its verdict filed."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from workbench_engine.conducting.archive import Archive
from workbench_engine.conducting.confirming import next_to_confirm, promising_above
from workbench_engine.conducting.course import Course
from workbench_engine.conducting.evaluation import BACKSTOP_S, CORRECT, Evaluated
from workbench_engine.conducting.failing import RunFailed
from workbench_engine.conducting.gate import static_fault
from workbench_engine.conducting.learning import Learner
from workbench_engine.conducting.ledger import Ledger
from workbench_engine.conducting.recorder import Recorder
from workbench_engine.conducting.rewarding import Paid, judge, unjudged
from workbench_engine.conducting.signals import Changed
from workbench_engine.conducting.suspicion import Suspicion
from workbench_engine.executor import Executor, Job
from workbench_engine.settings import RunSettings
from workbench_sessions import events as ev
from workbench_sessions.projection import Candidate, Details

log = logging.getLogger(__name__)

BROKEN_JOBS = 8
"""So many jobs in a row lost by the executor: it is the machine, not the candidates."""

CONFIRM_TRIES = 2


class Judging:
    """Judges one candidate at a call; several calls may be open."""

    def __init__(
        self,
        recorder: Recorder,
        settings: RunSettings,
        executor: Executor,
        archive: Archive,
        ledger: Ledger,
        learner: Learner,
        suspicion: Suspicion,
        course: Course,
        changed: Changed,
    ) -> None:
        self._recorder = recorder
        self._settings = settings
        self._executor = executor
        self._archive = archive
        self._ledger = ledger
        self._learner = learner
        self._suspicion = suspicion
        self._course = course
        self._changed = changed
        self._failed_confirmations: dict[str, int] = {}
        self._broken_in_a_row = 0
        self.contender: str | None = None
        """Who must be measured again next."""

    def look_for_contender(self) -> None:
        """To be called whenever a verdict or a decision changed."""
        if self._settings.confirm:
            given_up = [c for c, tries in self._failed_confirmations.items() if tries >= CONFIRM_TRIES]
            self.contender = next_to_confirm(self._recorder.projection.candidates.values(), given_up)
        self._changed.notify()

    async def judge(self, name: str, profile: str) -> None:
        """`profile` "search", or "final" for a confirmation. Raises RunFailed when the executor is beyond hope."""
        row = self._recorder.projection.candidates[name]
        text = self._ledger.text(row)
        fault = static_fault(text, row.kind)
        if fault:
            failed = ev.VerdictReached(candidate=name, verdict="FAILED", reason=fault)
            paid = Paid(Evaluated(failed, fault), unjudged(self._settings.reward))
        else:
            self._suspicion.read(row, text)
            paid = await self._run(row, text, profile)
        done = paid.done
        self._count_broken(name, done.broken)
        if profile == "final" and done.broken:
            # The verdict of the search stays, unconfirmed: losing a job says nothing about the candidate.
            self._failed_confirmations[name] = self._failed_confirmations.get(name, 0) + 1
            self._recorder.record([ev.StageStarted(candidate=name, stage="done", device="")])
            return
        self._file(row, text, paid, final=profile == "final")

    async def _run(self, row: Candidate, text: str, profile: str) -> Paid:
        p, settings = self._recorder.projection, self._settings
        best = p.candidates[p.best].speedup if p.best is not None else None
        job = Job(
            candidate=row.id,
            kind=row.kind,
            text=text,
            case=settings.case,
            profile=profile,
            promising_above=promising_above(best, settings.promising),
            deadline_s=settings.deadline_s,
        )
        # A job also waits for those in front of it to leave the timing lease.
        patience_s = settings.deadline_s * (settings.in_flight + 1) + BACKSTOP_S
        return await judge(settings.reward, self._executor, job, self._recorder.emit, patience_s, best)

    def _file(self, row: Candidate, text: str, paid: Paid, final: bool) -> None:
        """The archive: the only place where a verdict becomes a fact."""
        p, done = self._recorder.projection, paid.done
        evaluation = None if final else p.evaluations + 1
        verdict = replace(
            done.verdict,
            confirmed=final,
            evaluation=evaluation,
            # A reward that was already learned from stays what it was.
            reward=paid.reward if not final or self._learner.may_still_learn(row.group) else None,
        )
        self._recorder.record([verdict, replace(self._course.spent(), evaluations=evaluation or p.evaluations)])
        p = self._recorder.projection
        row, details = p.candidates[row.id], p.details.get(row.id, Details())
        if done.feedback:
            details = replace(details, feedback=done.feedback)
        self._ask_for_review(row)
        self._suspicion.judged(row.id, text)
        self._archive.take(row, details, text, again=final)
        self._ledger.forget(row.id)
        self.look_for_contender()
        self._learner.collect()

    def _ask_for_review(self, row: Candidate) -> None:
        """In review mode a good one is kept from being a parent until a person decides; a bad one needs nobody."""
        if row.decision == "review" and row.verdict not in CORRECT:
            self._archive.release(row.id)
            self._recorder.record([ev.DecisionUndone(candidate=row.id)])
        wanted = {"FASTER"} if self._settings.review == "faster" else CORRECT
        if self._recorder.projection.header.mode == "review" and row.decision is None and row.verdict in wanted:
            self._archive.hold(row.id)
            self._recorder.record([ev.ReviewRequested(candidate=row.id)])

    def _count_broken(self, name: str, broken: str) -> None:
        if not broken:
            self._broken_in_a_row = 0
            return
        self._broken_in_a_row += 1
        log.error("job of %s lost: %s", name, broken)
        remedy = "the run goes on; `workbench doctor` checks the machine"
        self._recorder.emit(ev.WarningRaised(text=f"{name}: the executor failed: {broken}", remedy=remedy))
        if self._broken_in_a_row >= BROKEN_JOBS:
            raise RunFailed(f"the executor lost {BROKEN_JOBS} jobs in a row: {broken}", "run `workbench doctor`")
