"""From a session file to its end: describe the task, open or resume the session, run it, close it."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from workbench_engine.conducting.archive import Archive
from workbench_engine.conducting.clock import RunClock
from workbench_engine.conducting.desk import Desk, NothingRuns, Refused
from workbench_engine.conducting.evaluation import LocalRunner
from workbench_engine.conducting.failing import RunFailed
from workbench_engine.conducting.opening import case_of, session_opened, task_card, unknown_task
from workbench_engine.conducting.policy_thread import PolicyThread
from workbench_engine.conducting.recorder import Recorder
from workbench_engine.conductor import Conductor
from workbench_engine.exits import ExitCode
from workbench_engine.host import host_card
from workbench_engine.policies.contract import Brief, Policy, Say
from workbench_engine.policies.llm.by_hand import prompts_folder
from workbench_engine.policies.registry import make_policy
from workbench_engine.settings import RunSettings, SettingsError, decode_settings
from workbench_engine.tasks.catalogue import resolve, space_for
from workbench_engine.tasks.contract import Task, TaskRejected
from workbench_engine.tasks.design import DesignSpace
from workbench_engine.telemetry import CpuSampler, sample_forever
from workbench_sessions import events as ev
from workbench_sessions.commands import Command, Pause, Resume, Stop
from workbench_sessions.errors import SessionError
from workbench_sessions.events import Event
from workbench_sessions.log import SessionWriter

log = logging.getLogger(__name__)

ExecutorFactory = Callable[[RunSettings, Path], LocalRunner]
"""Makes the executor of a run from its settings, the task's source among them, and the task's path."""

PolicyMaker = Callable[[str, DesignSpace | None, int], Policy]


class Engine:
    """One engine process's work on one session."""

    def __init__(
        self, writer: SessionWriter, make_executor: ExecutorFactory, policies: PolicyMaker = make_policy
    ) -> None:
        self._path = writer.path
        self._request = writer.request()
        self._recorder = Recorder(writer)
        self._make_executor = make_executor
        self._make_policy = policies
        self._conductor: Conductor | None = None
        self._task: asyncio.Task[ExitCode] | None = None
        self._interrupted = ""
        self._cores = len(os.sched_getaffinity(0))
        self._sampler = CpuSampler()
        self._left: list[tuple[int, Command]] = []

    async def run(self) -> ExitCode:
        """Runs the session to its end and lets go of the file. Never raises for what a run can meet."""
        self._task = asyncio.create_task(self._guarded())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            # Only the main thread can; a test's engine in another one does without.
            with suppress(RuntimeError, ValueError):
                loop.add_signal_handler(number, self.interrupt, signal.Signals(number).name)
        try:
            return await self._task
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            return self._close("stopped", f"interrupted by {self._interrupted}", ExitCode.INTERRUPTED)
        finally:
            with suppress(SessionError):
                self._recorder.close()

    def interrupt(self, by: str) -> None:
        """Ends the run cleanly, now."""
        self._interrupted = by
        if self._conductor is not None:
            with suppress(Refused):
                self._conductor.stop(f"interrupted by {by}")
        elif self._task is not None:
            self._task.cancel()

    def answer(self) -> ExitCode:
        """Answers the waiting commands without running anything, and lets go of the file."""
        try:
            settings = decode_settings(self._request)
            archive = Archive(settings.task, settings)
            desk = Desk(self._recorder, archive, NothingRuns(), self._folder(settings))
            for number, command in self._recorder.take_commands():
                desk.handle(number, command)
        finally:
            self._recorder.close()
        return ExitCode.OK

    async def _guarded(self) -> ExitCode:
        try:
            return await self._live()
        except SessionError as error:
            # Nothing can be written any more, least of all a farewell: the log ends with the last stored fact.
            log.error("%s", error)
            return self._close("failed", str(error), ExitCode.ENVIRONMENT)
        except (TaskRejected, SettingsError) as error:
            return self._fail(str(error), "", ExitCode.USAGE)
        except RunFailed as error:
            return self._fail(str(error), error.remedy, ExitCode.FAILED)
        except Exception as error:
            log.exception("the engine failed")
            return self._fail(f"the engine failed: {type(error).__name__}: {error}", "see its log", ExitCode.FAILED)

    async def _live(self) -> ExitCode:
        resumed = self._recorder.projection.seq > 0
        self._recorder.record([ev.EngineStarted(pid=os.getpid(), resumed=resumed)])
        settings, path = self._read_task(decode_settings(self._request))
        if resumed:
            self._refuse_stale()
        self._recorder.record([ev.PhaseChanged(phase="starting", reason="describing the task, measuring the floor")])
        space = space_for(path)
        try:
            policy = PolicyThread(self._make_policy(settings.policy, space, settings.seed))
        except ValueError as error:
            raise SettingsError(str(error)) from None
        try:
            async with self._background(settings):
                return await self._run(settings, path, space, policy)
        finally:
            await policy.aclose()

    async def _run(
        self, settings: RunSettings, path: Path, space: DesignSpace | None, policy: PolicyThread
    ) -> ExitCode:
        executor: LocalRunner | None = None
        try:
            try:
                executor = self._make_executor(settings, path)
                task = await executor.start(self._emit_and_watch)
            except (TaskRejected, SessionError):
                raise
            except Exception as error:
                # Whatever it is, without an executor the machine cannot judge anything.
                log.exception("the executor did not start")
                what, _, remedy = str(error).partition("; remedy: ")
                remedy = getattr(error, "remedy", remedy) or "run `workbench doctor`"
                return self._fail(what or type(error).__name__, remedy, ExitCode.ENVIRONMENT)
            self._open_session(settings, task, space, getattr(executor, "sandbox_level", ""))
            await self._brief(settings, task, policy)
            archive = Archive(space.task if space is not None else task.name, settings)
            clock = RunClock(self._recorder.projection.spent_seconds)
            resumed = bool(self._recorder.projection.candidates)
            self._conductor = Conductor(self._recorder, settings, executor, policy, archive, clock, resumed)
            desk = Desk(self._recorder, archive, self._conductor, self._folder(settings))
            outcome = await self._conductor.run(desk, self._left)
            return self._close(outcome, self._conductor.reason, self._code(outcome))
        finally:
            if executor is not None:
                with suppress(Exception):
                    await executor.aclose()

    async def _brief(self, settings: RunSettings, task: Task, policy: PolicyThread) -> None:
        """Tells the policy what it may know of the run. Raises SettingsError when it cannot work with it."""
        p = self._recorder.projection
        brief = Brief(
            task=task,
            case=case_of(task, settings.case, settings.backend).name,
            backend=settings.backend,
            host=p.header.host or host_card(self._cores),
            seed=settings.seed,
            llm=settings.llm,
            say=self._hearing(),
            folder=prompts_folder(self._path),
            budget=p.header.budget,
            prompts=p.prompts,
            spent_tokens=p.spent_tokens,
            spent_money=p.spent_money,
            vllm=settings.vllm,
        )
        try:
            await policy.brief(brief)
        except ValueError as error:
            raise SettingsError(str(error)) from None

    def _hearing(self) -> Say:
        """How a policy's thread tells facts: they are stored on this loop, in the order they were said."""
        loop = asyncio.get_running_loop()

        def store(event: Event, texts: Mapping[str, str]) -> None:
            try:
                for text in texts.values():
                    self._recorder.put_source(text)
            except SessionError as error:
                # The next flush meets the same and ends the run.
                log.error("%s", error)
            self._recorder.emit(event)

        def say(event: Event, texts: Mapping[str, str]) -> None:
            # A thread that outlives the loop has nobody to tell.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(store, event, texts)

        return say

    def _read_task(self, settings: RunSettings) -> tuple[RunSettings, Path]:
        """The settings with the task's source, the one the session began with. Raises TaskRejected."""
        path = Path(settings.path) if settings.path else resolve(settings.task)
        card = self._recorder.projection.header.task
        if card is not None and card.dtype:
            settings = replace(settings, source=self._recorder.source(card.source_sha256))
        if not settings.source:
            try:
                settings = replace(settings, source=path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                raise TaskRejected(f"{path}: cannot be read ({error}); give a readable task file") from None
        return settings, path

    def _open_session(self, settings: RunSettings, task: Task, space: DesignSpace | None, level: str) -> None:
        card = self._recorder.projection.header.task
        if card is not None and card.dtype:
            return
        # Not opened yet, or only with what little an engine knew that could not start.
        try:
            case = case_of(task, settings.case, settings.backend)
        except KeyError as error:
            raise TaskRejected(str(error.args[0])) from None
        self._recorder.put_source(task.source)
        self._say_open(settings, task_card(task, case, space), level)

    def _say_open(self, settings: RunSettings, card: ev.TaskCard, level: str) -> None:
        level = level or ("none (trusted)" if settings.trust else "")
        folder = str(self._folder(settings))
        h = self._recorder.projection.header
        if h.session_id:
            settings = replace(settings, budget=h.budget, mode=h.mode)
        name, unique = self._path.stem, h.session_id or secrets.token_hex(8)
        self._recorder.record([session_opened(settings, card, host_card(self._cores), unique, name, level, folder)])

    def _folder(self, settings: RunSettings) -> Path:
        """Where accepted candidates go: beside the session unless the request says otherwise."""
        given = self._recorder.projection.header.output_dir or settings.output_dir
        return Path(given).expanduser() if given else self._path.parent / f"{self._path.stem}-accepted"

    def _refuse_stale(self) -> None:
        """A wish about an engine that is gone would stop the new one: refused. All others still hold."""
        stale = []
        for number, command in self._recorder.take_commands():
            if isinstance(command, Pause | Resume | Stop):
                reason = "it was meant for an engine that is gone; send it again if it still holds"
                stale.append(ev.CommandRefused(command=number, reason=reason))
            else:
                self._left.append((number, command))
        self._recorder.record(stale)

    @asynccontextmanager
    async def _background(self, settings: RunSettings) -> AsyncIterator[None]:
        """Storing and telemetry, also while the run only starts."""
        sampling = sample_forever(self._sampler, self._recorder.emit, 1.0 / settings.telemetry_hz)
        tasks = [asyncio.create_task(self._recorder.run()), asyncio.create_task(sampling)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _emit_and_watch(self, event: Event) -> None:
        self._recorder.emit(event)
        if isinstance(event, ev.DeviceSeen):
            self._sampler.watch(event)

    def _code(self, outcome: str) -> ExitCode:
        if self._interrupted:
            return ExitCode.INTERRUPTED
        if self._recorder.projection.best is not None:
            return ExitCode.OK
        return ExitCode.BUDGET if outcome == "budget" else ExitCode.FAILED

    def _fail(self, what: str, remedy: str, code: ExitCode) -> ExitCode:
        with suppress(SessionError):
            self._recorder.record([ev.WarningRaised(text=what, remedy=remedy)])
        log.error("%s%s", what, f"; {remedy}" if remedy else "")
        return self._close("failed", what, code)

    def _close(self, outcome: str, reason: str, code: ExitCode) -> ExitCode:
        try:
            if not self._recorder.projection.header.session_id:
                # It never came to be opened: a list of sessions still must say what it was about.
                with suppress(SettingsError):
                    settings = decode_settings(self._request)
                    self._say_open(settings, unknown_task(settings), "")
            best = self._recorder.projection.best
            self._recorder.record([ev.SessionClosed(outcome=outcome, best=best, reason=reason)])
        except SessionError as error:
            log.error("%s", error)
            return ExitCode.ENVIRONMENT
        return code
