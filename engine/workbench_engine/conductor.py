"""The conductor: what runs next, within which budget, until which end.

Stages are coroutines joined by a short queue: propose (one group ahead at most) → gate → evaluation through the
`Executor`, several jobs in flight so that builds overlap timing → archive. Completion is awaited; only the commands
table is polled. The log is the truth: whatever this process holds in memory is rebuilt from it by a resumed one.

`conducting.asking` is how a policy is asked, `conducting.judging` how a candidate is judged, `conducting.course` when
the run pauses and ends; here they are joined.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from workbench_engine.conducting.archive import Archive
from workbench_engine.conducting.asking import Asker
from workbench_engine.conducting.clock import RunClock
from workbench_engine.conducting.course import Course
from workbench_engine.conducting.desk import Desk, Refused
from workbench_engine.conducting.judging import Judging
from workbench_engine.conducting.learning import Learner
from workbench_engine.conducting.ledger import Ledger
from workbench_engine.conducting.policy_thread import PolicyThread
from workbench_engine.conducting.recorder import Recorder
from workbench_engine.conducting.signals import Changed
from workbench_engine.conducting.suspicion import Suspicion, asking
from workbench_engine.executor import Executor
from workbench_engine.settings import RunSettings
from workbench_sessions.commands import Command

COMMANDS_S = 0.05
SPENT_S = 2.0


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
        self._policy = policy
        self._resumed = resumed
        self._changed = changed = Changed()
        self._waiting: deque[str] = deque()
        self._persons: deque[str] = deque()
        self._in_flight: set[str] = set()
        self._slots = asyncio.Semaphore(settings.in_flight)
        self._ledger = ledger = Ledger(recorder, policy, archive)
        self._suspicion = Suspicion(recorder, settings.cases, asking(settings))
        self._course = course = Course(recorder, clock, changed, settings.llm.patience_minutes * 60.0 or None)
        self._learner = learner = Learner(recorder, settings, policy, archive, ledger, changed)
        self._judging = Judging(
            recorder, settings, executor, archive, ledger, learner, self._suspicion, course, changed
        )
        self._asker = Asker(
            recorder, settings, policy, archive, ledger, learner, course, changed, self._waiting, self._idle
        )

    # Life of a run

    async def run(self, desk: Desk, left: Sequence[tuple[int, Command]] = ()) -> str:
        """Runs to the end and returns the outcome. Raises RunFailed, SessionError. Closing events are the caller's.

        `left` are commands that were taken already and wait for an answer.
        """
        for row in await self._ledger.take_over():
            (self._waiting if row.group is not None else self._persons).append(row.id)
        self._judging.look_for_contender()
        self._learner.collect()
        self._course.begin("resumed" if self._resumed else "")
        forever = [self._answer(desk, left), self._tell_spent(), self._recorder.run()]
        search = [
            self._learner.run(),
            *(self._asker.run() for _ in range(self._policy.in_flight)),
            *(self._evaluate() for _ in range(self._settings.in_flight)),
        ]
        if self._settings.confirm:
            search.append(self._confirm())
        tasks = [asyncio.create_task(c) for c in forever]
        ending = asyncio.create_task(self._search(search))
        stop = asyncio.create_task(self._course.stopped.wait())
        try:
            await _first([*tasks, ending, stop])
            if not self._course.stopped.is_set():
                await ending
        finally:
            self._course.disarm()
            await _cancel([*tasks, ending, stop])
            self._course.close()
            await self._suspicion.aclose()
        self._recorder.record([self._course.spent()])
        return self._course.outcome

    @property
    def reason(self) -> str:
        """Why the run ended."""
        return self._course.reason

    async def _search(self, coroutines: Sequence[Coroutine[Any, Any, None]]) -> None:
        """The stages, until the run has ended by itself and nothing is left to do."""
        tasks = [asyncio.create_task(c) for c in coroutines]
        done = asyncio.create_task(self._changed.until(self._finished))
        try:
            await _first([*tasks, done], all_of=done)
        finally:
            await _cancel([*tasks, done])

    def _finished(self) -> bool:
        """The end was called, and what it leaves to do is done."""
        idle = not self._in_flight and self._learner.idle
        return bool(self._course.outcome) and idle and self._judging.contender is None

    def _idle(self) -> bool:
        """Whether only the policy could bring more to do."""
        return not (self._waiting or self._persons or self._in_flight) and self._learner.idle

    async def _tell_spent(self) -> None:
        while True:
            await asyncio.sleep(SPENT_S)
            if not self._course.paused:
                self._recorder.emit(self._course.spent())

    # Evaluate

    def _next(self) -> deque[str] | None:
        """Where the next candidate comes from: a person's go first and are judged even while the run is paused."""
        if self._course.outcome:
            return None
        if self._persons:
            return self._persons
        return self._waiting if self._waiting and not self._course.paused else None

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
                    await self._judging.judge(name, "search")
                    self._asker.ahead.judging.add(time.monotonic() - start_s)
                finally:
                    self._in_flight.discard(name)
                    self._changed.notify()

    async def _confirm(self) -> None:
        """One confirmation at a time, always of the highest claim: most lesser ones are settled by it."""
        while True:
            await self._changed.until(lambda: not self._course.paused and self._judging.contender is not None)
            async with self._slots:
                name = self._judging.contender
                if name is None or self._course.paused:
                    continue
                self._in_flight.add(name)
                try:
                    await self._judging.judge(name, "final")
                finally:
                    self._in_flight.discard(name)
                    self._judging.look_for_contender()

    # Commands

    async def _answer(self, desk: Desk, left: Sequence[tuple[int, Command]]) -> None:
        for number, command in left:
            desk.handle(number, command)
        while True:
            for number, command in self._recorder.take_commands():
                desk.handle(number, command)
            await asyncio.sleep(COMMANDS_S)

    def stop(self, reason: str) -> None:
        """See `Course.stop`."""
        self._course.stop(reason)

    def pause(self) -> None:
        self._course.pause()

    def resume(self) -> None:
        self._course.resume()

    def submit(self, source: str, kind: str, parent: str | None, person: str, note: str) -> None:
        """A person's candidate: judged before anybody else's, also while paused."""
        if self._course.outcome:
            raise Refused("the run is ending; resume the session with a larger budget, then save the file again")
        self._persons.append(self._ledger.submit(source, kind, parent, person, note))

    def changed(self) -> None:
        """See `Controls`."""
        self._course.arm()
        self._judging.look_for_contender()


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


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError, Exception):
            await task
