"""The conductor: what runs next, within which budget, until which end.

Stages are coroutines joined by a short queue: propose (one group ahead at most) → gate → evaluation through the
`Executor`, several jobs in flight so that builds overlap timing → archive. Completion is awaited; only the commands
table is polled. The log is the truth: whatever this process holds in memory is rebuilt from it by a resumed one.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from workbench_engine.conducting import groups as grouping
from workbench_engine.conducting.ahead import Ahead
from workbench_engine.conducting.archive import Archive
from workbench_engine.conducting.clock import RunClock
from workbench_engine.conducting.confirming import next_to_confirm, promising_above
from workbench_engine.conducting.desk import Desk, Refused
from workbench_engine.conducting.evaluation import BACKSTOP_S, CORRECT, Evaluated
from workbench_engine.conducting.gate import static_fault
from workbench_engine.conducting.groups import Group
from workbench_engine.conducting.ledger import Ledger
from workbench_engine.conducting.outage import Outage
from workbench_engine.conducting.policy_thread import PolicyThread
from workbench_engine.conducting.recorder import Recorder
from workbench_engine.conducting.remarks import remarks
from workbench_engine.conducting.rewarding import Paid, judge, taught, unjudged
from workbench_engine.conducting.signals import Changed
from workbench_engine.conducting.suspicion import Suspicion, asking
from workbench_engine.executor import Executor, Job
from workbench_engine.policies.contract import (
    Context,
    NothingUsable,
    PolicyFailed,
    PolicySpent,
    PolicyUnavailable,
    Proposal,
)
from workbench_engine.settings import RunSettings
from workbench_sessions import events as ev
from workbench_sessions.commands import Command
from workbench_sessions.projection import Candidate, Details

log = logging.getLogger(__name__)

COMMANDS_S = 0.05
SPENT_S = 2.0
LOW_WATER = 1
"""A group is proposed when so few candidates wait: late enough to have learned, early enough that nobody idles."""

BARREN_GROUPS = 20
"""So many groups in a row without a single new candidate: the policy has nothing more to offer."""

BROKEN_JOBS = 8
"""So many jobs in a row lost by the executor: it is the machine, not the candidates."""

CONFIRM_TRIES = 2


class RunFailed(Exception):
    """The run cannot go on. `str()` is one line; `remedy` says what to do."""

    def __init__(self, what: str, remedy: str = "") -> None:
        self.remedy = remedy
        super().__init__(what)


class Conductor:
    """One run of one session, from "running" to its end. Not reusable."""

    def __init__(
        self,
        recorder: Recorder,
        settings: RunSettings,
        executor: Executor,
        policy: PolicyThread,
        archive: Archive,
        clock: RunClock,
        resumed: bool = False,
    ) -> None:
        self._recorder = recorder
        self._settings = settings
        self._executor = executor
        self._policy = policy
        self._archive = archive
        self._clock = clock
        self._resumed = resumed
        self._ledger = Ledger(recorder, policy, archive)
        self._suspicion = Suspicion(recorder, settings.cases, asking(settings))
        self._changed = Changed()
        self._waiting: deque[str] = deque()
        self._persons: deque[str] = deque()
        self._in_flight: set[str] = set()
        self._slots = asyncio.Semaphore(settings.in_flight)
        self._complete: deque[Group] = deque()
        self._learning: int | None = None
        self._asking: dict[int, int] = {}
        self._ahead = Ahead(settings.in_flight)
        self._barren = 0
        self._exhausted = ""
        self._spent_by_policy = ""
        self._outage = Outage(self._outage_changed, settings.llm.patience_minutes * 60.0 or None)
        self._paused = False
        self._outcome = ""
        self._reason = ""
        self._stopped = asyncio.Event()
        self._contender: str | None = None
        self._failed_confirmations: dict[str, int] = {}
        self._broken_in_a_row = 0
        self._timer: asyncio.TimerHandle | None = None

    # Life of a run

    async def run(self, desk: Desk, left: Sequence[tuple[int, Command]] = ()) -> str:
        """Runs to the end and returns the outcome. Raises RunFailed, SessionError. Closing events are the caller's.

        `left` are commands that were taken already and wait for an answer.
        """
        for row in await self._ledger.take_over():
            (self._waiting if row.group is not None else self._persons).append(row.id)
        self._look_for_contender()
        self._collect()
        self._phase("running", "resumed" if self._resumed else "")
        self._clock.start()
        self._arm()
        forever = [self._answer(desk, left), self._tell_spent(), self._recorder.run()]
        search = [
            self._learn(),
            *(self._propose() for _ in range(self._policy.in_flight)),
            *(self._evaluate() for _ in range(self._settings.in_flight)),
        ]
        if self._settings.confirm:
            search.append(self._confirm())
        tasks = [asyncio.create_task(c) for c in forever]
        ending = asyncio.create_task(self._search(search))
        stop = asyncio.create_task(self._stopped.wait())
        try:
            await self._first([*tasks, ending, stop])
            if not self._stopped.is_set():
                await ending
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await _cancel([*tasks, ending, stop])
            self._clock.stop()
            await self._suspicion.aclose()
        self._recorder.record([self._spent()])
        return self._outcome

    def stop(self, reason: str) -> None:
        """Ends the run now: what is in flight is given up, and judged when the session is resumed."""
        if self._stopped.is_set():
            raise Refused("the run is stopping already")
        self._outcome, self._reason = self._outcome or "stopped", reason or self._reason
        self._stopped.set()
        self._changed.notify()
        self._phase("stopping", reason)

    @property
    def reason(self) -> str:
        return self._reason

    async def _search(self, coroutines: Sequence[Coroutine[Any, Any, None]]) -> None:
        """The stages, until the run has ended by itself and nothing is left to do."""
        tasks = [asyncio.create_task(c) for c in coroutines]
        done = asyncio.create_task(self._changed.until(self._finished))
        try:
            await self._first([*tasks, done], all_of=done)
        finally:
            await _cancel([*tasks, done])

    @staticmethod
    async def _first(tasks: Sequence[asyncio.Task[Any]], all_of: asyncio.Task[Any] | None = None) -> None:
        """Waits for one task to end (for `all_of`, when given); an exception of any of them is raised at once."""
        pending: set[asyncio.Task[Any]] = set(tasks)
        while pending:
            ended, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                if not task.cancelled() and (error := task.exception()) is not None:
                    raise error
            if all_of is None or all_of in ended:
                return

    def _finished(self) -> bool:
        """The end was called, and what it leaves to do is done."""
        idle = not (self._in_flight or self._complete)
        return bool(self._outcome) and idle and self._contender is None

    def _end(self, outcome: str, reason: str = "") -> None:
        """No more candidates; those in flight are finished and the best is confirmed."""
        if self._outcome:
            return
        self._outcome, self._reason = outcome, reason
        self._phase("stopping", reason or outcome)
        self._changed.notify()

    def _phase(self, phase: ev.Phase, reason: str = "") -> None:
        self._recorder.record([ev.PhaseChanged(phase=phase, reason=reason)])

    # Budget

    def _active(self) -> bool:
        return not self._outcome and not self._paused

    def _allowance(self) -> int:
        """How many candidates may still be proposed, at most one group."""
        p = self._recorder.projection
        cap = p.header.budget.evaluations
        size = self._policy.group(self._settings.group_size)
        c = p.counts
        judged = c.faster + c.slower + c.same + c.ambiguous + c.wrong + c.failed + c.cheating
        pending = c.proposed - judged + sum(self._asking.values())
        return size if cap is None else max(0, min(size, cap - p.evaluations - pending))

    def _arm(self) -> None:
        """Sets the alarm for the budget in seconds."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        cap = self._recorder.projection.header.budget.seconds
        if cap is None or not self._active() or self._outage.on:
            return
        left = cap - self._clock.spent_s
        if left <= 0:
            self._end("budget", f"{cap:g} s are spent")
        else:
            self._timer = asyncio.get_running_loop().call_later(left, self._arm)

    def _spent(self) -> ev.BudgetSpent:
        p = self._recorder.projection
        return ev.BudgetSpent(
            evaluations=p.evaluations, seconds=self._clock.spent_s, tokens=p.spent_tokens, money=p.spent_money
        )

    async def _tell_spent(self) -> None:
        while True:
            await asyncio.sleep(SPENT_S)
            if not self._paused:
                self._recorder.emit(self._spent())

    # Propose and gate

    async def _propose(self) -> None:
        """One group after another. A policy that waits (for a model) has several of these."""
        while True:
            await self._changed.until(self._wants_a_group)
            n = self._allowance()
            if n == 0 or self._exhausted:
                if self._idle():
                    by_budget = self._spent_by_policy or not self._exhausted
                    self._end("budget" if by_budget else "exhausted", self._why_no_more())
                    return
                await self._changed.wait()
                continue
            number = self._ledger.begin_group()
            self._asking[number] = n
            try:
                context = self._context(number)
                asked = await self._ask(context, n)
            finally:
                del self._asking[number]
                self._changed.notify()
            if asked is not None:
                new = self._ledger.admit(context, asked[0][:n], asked[1])
                self._waiting.extend(new)
                self._barren = 0 if new else self._barren + 1
                if not asked[0]:
                    self._exhausted = f"policy {self._policy.name} has nothing more to propose"
                elif self._barren >= BARREN_GROUPS:
                    self._exhausted = f"policy {self._policy.name} has proposed nothing new for {BARREN_GROUPS} groups"
            self._collect()
            self._changed.notify()

    def _context(self, number: int) -> Context:
        p = self._recorder.projection
        said = remarks(p.candidates.values())
        rng = random.Random(f"{self._settings.seed}:{number}")
        context = self._archive.context(number, p.header.steering, rng, {r.candidate for r in said if r.accepted})
        return replace(context, remarks=said, budget=p.header.budget)

    async def _ask(self, context: Context, n: int) -> tuple[list[Proposal], bytes] | None:
        """Proposals, sooner or later; None when none can be made this time (or ever again, see `_exhausted`)."""
        probing = False
        try:
            while True:
                start_s = time.monotonic()
                try:
                    asked = await self._policy.propose(context, n)
                except PolicyUnavailable as gone:
                    probing = await self._outage.wait(gone, probing)
                    continue
                self._outage.over()
                self._ahead.asking.add(time.monotonic() - start_s)
                return asked
        except NothingUsable as nothing:
            # The policy works, only this time nothing came of it.
            self._outage.over()
            self._barren += 1
            if self._barren >= BARREN_GROUPS:
                self._exhausted = f"{BARREN_GROUPS} prompts in a row gave nothing that can be tried: {nothing}"
        except PolicySpent as spent:
            self._exhausted = self._spent_by_policy = str(spent)
        except PolicyFailed as failed:
            raise RunFailed(str(failed), failed.remedy) from failed
        except PolicyUnavailable as gone:
            self._end("stopped", f"waited {self._settings.llm.patience_minutes:g} minutes: {gone}")
        finally:
            if probing:
                self._outage.given_up()
        return None

    def _outage_changed(self, reason: str) -> None:
        """While the policy is away no time is spent; what was proposed before is still judged."""
        if self._outcome or self._paused:
            return
        if reason:
            self._clock.stop()
            self._recorder.record([ev.PhaseChanged(phase="paused", reason=reason), self._spent()])
        else:
            self._clock.start()
            self._phase("running", "the policy can be asked again")
        self._arm()
        self._changed.notify()

    def _wants_a_group(self) -> bool:
        limit = self._settings.staleness
        fresh = limit is None or self._ledger.unlearned <= limit
        size = self._policy.group(self._settings.group_size)
        room = len(self._asking) < self._ahead.target(self._policy.in_flight, size)
        few = len(self._waiting) <= LOW_WATER and room
        return self._active() and fresh and few and not self._outage.on

    def _idle(self) -> bool:
        return not (self._waiting or self._persons or self._in_flight or self._complete or self._asking)

    def _why_no_more(self) -> str:
        return self._exhausted or f"{self._recorder.projection.evaluations} evaluations are spent"

    # Evaluate and archive

    def _next(self) -> deque[str] | None:
        """Where the next candidate comes from: a person's go first and are judged even while the run is paused."""
        if self._outcome:
            return None
        if self._persons:
            return self._persons
        return self._waiting if self._waiting and not self._paused else None

    async def _evaluate(self) -> None:
        while True:
            await self._changed.until(lambda: self._next() is not None)
            async with self._slots:
                queue = self._next()
                if queue is None:
                    continue
                name = queue.popleft()
                self._in_flight.add(name)
                self._changed.notify()
                start_s = time.monotonic()
                try:
                    await self._judge(name, "search")
                    self._ahead.judging.add(time.monotonic() - start_s)
                finally:
                    self._in_flight.discard(name)
                    self._changed.notify()

    async def _confirm(self) -> None:
        """One confirmation at a time, always of the highest claim: most lesser ones are settled by it."""
        while True:
            await self._changed.until(lambda: not self._paused and self._contender is not None)
            async with self._slots:
                name = self._contender
                if name is None or self._paused:
                    continue
                self._in_flight.add(name)
                try:
                    await self._judge(name, "final")
                finally:
                    self._in_flight.discard(name)
                    self._look_for_contender()

    def _look_for_contender(self) -> None:
        """To be called whenever a verdict or a decision changed."""
        if self._settings.confirm:
            given_up = [c for c, tries in self._failed_confirmations.items() if tries >= CONFIRM_TRIES]
            self._contender = next_to_confirm(self._recorder.projection.candidates.values(), given_up)
        self._changed.notify()

    async def _judge(self, name: str, profile: str) -> None:
        p = self._recorder.projection
        row = p.candidates[name]
        text = self._ledger.text(row)
        fault = static_fault(text, row.kind)
        if fault:
            failed = ev.VerdictReached(candidate=name, verdict="FAILED", reason=fault)
            paid = Paid(Evaluated(failed, fault), unjudged(self._settings.reward))
        else:
            self._suspicion.read(row, text)
            best = p.candidates[p.best].speedup if p.best is not None else None
            job = Job(
                candidate=name,
                kind=row.kind,
                text=text,
                case=self._settings.case,
                profile=profile,
                promising_above=promising_above(best, self._settings.promising),
                deadline_s=self._settings.deadline_s,
            )
            # A job also waits for those in front of it to leave the timing lease.
            patience_s = self._settings.deadline_s * (self._settings.in_flight + 1) + BACKSTOP_S
            reward = self._settings.reward
            paid = await judge(reward, self._executor, job, self._recorder.emit, patience_s, best)
        done = paid.done
        self._count_broken(name, done.broken)
        if profile == "final" and done.broken:
            # The verdict of the search stays, unconfirmed: losing a job says nothing about the candidate.
            self._failed_confirmations[name] = self._failed_confirmations.get(name, 0) + 1
            self._recorder.record([ev.StageStarted(candidate=name, stage="done", device="")])
            return
        self._file(row, text, paid, final=profile == "final")

    def _file(self, row: Candidate, text: str, paid: Paid, final: bool) -> None:
        """The archive: the only place where a verdict becomes a fact."""
        p, done = self._recorder.projection, paid.done
        evaluation = None if final else p.evaluations + 1
        verdict = replace(
            done.verdict,
            confirmed=final,
            evaluation=evaluation,
            # A reward that was already learned from stays what it was.
            reward=paid.reward if self._still_counts(row, final) else None,
        )
        self._recorder.record([verdict, replace(self._spent(), evaluations=evaluation or p.evaluations)])
        p = self._recorder.projection
        row, details = p.candidates[row.id], p.details.get(row.id, Details())
        if done.feedback:
            details = replace(details, feedback=done.feedback)
        self._ask_for_review(row)
        self._suspicion.judged(row.id, text)
        self._archive.take(row, details, text, again=final)
        self._ledger.forget(row.id)
        self._look_for_contender()
        self._collect()

    def _still_counts(self, row: Candidate, final: bool) -> bool:
        """Whether a policy may yet be given this reward."""
        return not final or (self._ledger.is_open(row.group) and row.group != self._learning)

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
        self._warn(f"{name}: the executor failed: {broken}", "the run goes on; `workbench doctor` checks the machine")
        if self._broken_in_a_row >= BROKEN_JOBS:
            raise RunFailed(f"the executor lost {BROKEN_JOBS} jobs in a row: {broken}", "run `workbench doctor`")

    # Learn

    def _collect(self) -> None:
        """Groups whose last member was judged go to the learner."""
        queued = {g.number for g in self._complete}
        self._complete.extend(g for g in self._ledger.complete() if g.number not in queued)
        self._changed.notify()

    async def _learn(self) -> None:
        while True:
            await self._changed.until(lambda: bool(self._complete))
            group = self._complete[0]
            self._learning = group.number
            p = self._recorder.projection
            told = grouping.outcomes(group, p.candidates, p.details)
            told = taught(self._settings.reward, told, p.candidates.values())
            update, state = await self._policy.learn(group.context, told)
            event = self._ledger.learned(group, told, update, state)
            self._recorder.record([event, *self._archive.group_done()])
            self._complete.popleft()
            self._learning = None
            self._changed.notify()

    # Commands

    async def _answer(self, desk: Desk, left: Sequence[tuple[int, Command]]) -> None:
        for number, command in left:
            desk.handle(number, command)
        while True:
            for number, command in self._recorder.take_commands():
                desk.handle(number, command)
            await asyncio.sleep(COMMANDS_S)

    def pause(self) -> None:
        if self._paused or self._outcome:
            raise Refused("the run is ending" if self._outcome else "the run is paused already")
        self._paused = True
        self._clock.stop()
        self._recorder.record([ev.PhaseChanged(phase="paused"), self._spent()])

    def resume(self) -> None:
        if self._outage.on and not self._paused:
            self._phase("paused", f"trying again at once: {self._outage.reason}")
            self._outage.try_now()
            return
        if not self._paused:
            raise Refused("the run is not paused")
        self._paused = False
        if self._outage.on:
            self._phase("paused", self._outage.reason)
            self._outage.try_now()
            return
        self._clock.start()
        self._phase("running")

    def submit(self, source: str, kind: str, parent: str | None, person: str, note: str) -> None:
        """A person's candidate: judged before anybody else's, also while paused."""
        if self._outcome:
            raise Refused("the run is ending; resume the session with a larger budget, then save the file again")
        self._persons.append(self._ledger.submit(source, kind, parent, person, note))

    def changed(self) -> None:
        self._arm()
        self._look_for_contender()

    def _warn(self, text: str, remedy: str) -> None:
        self._recorder.emit(ev.WarningRaised(text=text, remedy=remedy))


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError, Exception):
            await task
