"""This machine's executor: kernels built on the free cores, judged on stations, one a device.

A device of the `cpu` backend is one core set aside for the clock; builds, policy and screens stay off it. A station
that dies or overruns is replaced, and the job that was on it fails with the reason; everything else goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from workbench_engine.backends.cpu import CompilerMissing, CpuBuilder
from workbench_engine.executor import Job, JobResult
from workbench_engine.host import cpu_name
from workbench_engine.referee.bench import Opened
from workbench_engine.referee.station import Answer, Judge, Open, Request
from workbench_engine.sandbox.level import SandboxUnavailable, probe
from workbench_engine.tasks.contract import Task, TaskRejected
from workbench_sessions.events import (
    ActivityChanged,
    BuildFinished,
    DeviceSeen,
    Event,
    StageStarted,
    VerdictReached,
    WarningRaised,
    decode,
)

Emit = Callable[[Event], None]
OPEN_DEADLINE_S = 420.0
KILL_S = 5.0
LINE_LIMIT = 32 << 20


class EnvironmentLacking(Exception):
    """Something this machine must have is missing. `str()` is one line with the remedy."""


class StationDied(Exception):
    """A measuring station ended, hung or broke its protocol."""


class Station:
    """One station process and its pipe. Not shared: the lease is held by one job at a time."""

    def __init__(self, device: str, core: int) -> None:
        self.device = device
        self.core = core
        self.lease = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._request: Open | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def open(self, request: Open, emit: Emit) -> Opened:
        """Start the process and load the task. Raises TaskRejected, EnvironmentLacking, StationDied."""
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "workbench_engine.referee.station",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
            env=environment,
            start_new_session=True,
        )
        self._request = request
        result = await self._ask(request, emit, OPEN_DEADLINE_S)
        return msgspec.json.decode(result, type=Opened)

    async def judge(self, request: Judge, emit: Emit, deadline_s: float) -> VerdictReached:
        """Raises StationDied."""
        result = await self._ask(request, emit, deadline_s)
        return msgspec.json.decode(result, type=VerdictReached)

    async def _ask(self, request: Request, emit: Emit, deadline_s: float) -> bytes:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise StationDied(f"station {self.device} is not running")
        try:
            async with asyncio.timeout(deadline_s):
                process.stdin.write(msgspec.json.encode(request) + b"\n")
                await process.stdin.drain()
                while line := await process.stdout.readline():
                    answer = msgspec.json.decode(line, type=Answer)
                    if not answer.done:
                        emit(decode(answer.fact, answer.body))
                        continue
                    if not answer.error:
                        return bytes(answer.result)
                    if answer.error_kind == "task":
                        raise TaskRejected(answer.error)
                    if answer.error_kind == "sandbox":
                        raise EnvironmentLacking(answer.error)
                    raise StationDied(answer.error)
        except TimeoutError:
            await self.kill()
            raise StationDied(f"station {self.device} gave no verdict within {deadline_s:.0f} s") from None
        except asyncio.CancelledError:
            # Whoever gave the job up: its worker must not run on, nor its answer be read as that of the next job.
            self._strike()
            raise
        except (ConnectionError, msgspec.DecodeError, ValueError) as error:
            await self.kill()
            raise StationDied(f"station {self.device} broke off: {error}") from None
        code = await process.wait()
        raise StationDied(f"station {self.device} ended with status {code}")

    async def revive(self, emit: Emit) -> None:
        """A new process with the same task; the floor is measured again. Raises as `open`."""
        await self.kill()
        assert self._request is not None
        await self.open(self._request, emit)

    async def kill(self) -> None:
        process = self._strike()
        if process is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KILL_S):
                await process.wait()

    def _strike(self) -> asyncio.subprocess.Process | None:
        """SIGKILL without waiting; the cages of its workers die with it."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return process


class LocalExecutor:
    """Runs jobs on this machine. `start` first, then `run` as often as wanted, concurrently."""

    def __init__(
        self,
        task_source: str,
        task_path: str,
        *,
        case: str = "",
        trust: bool = False,
        cache_dir: Path,
        cores: tuple[int, ...] = (),
        devices: int = 1,
        final_threads: int = 0,
        warm_modules: bool = False,
    ) -> None:
        """`cores`: those this run may use (default: all allowed). The last `devices` of them are measured on.

        `final_threads`: threads of the extra measurement of confirmed winners; 0 = as many as there are cores.
        """
        self._source = task_source
        self._path = task_path
        self._case = case
        self._trust = trust
        self._cache = cache_dir
        self._cores = sorted(cores or os.sched_getaffinity(0))
        count = max(1, min(devices, len(self._cores) - 1)) if len(self._cores) > 1 else 1
        self._measured = self._cores[-count:]
        self._free = self._cores[:-count] or self._cores
        self._threads = final_threads or len(self._cores)
        self._warm_modules = warm_modules
        self._stations: list[Station] = []
        self._idle: asyncio.Queue[Station] = asyncio.Queue()
        self._build_slots = asyncio.Semaphore(len(self._free))
        self._building: dict[int, str] = {}
        self._quiet = asyncio.Lock()
        self._builder: CpuBuilder | None = None
        self._affinity: set[int] = set()
        self.sandbox_level = ""
        self.delta = 0.0

    @property
    def free_cores(self) -> list[int]:
        """Cores nothing is timed on: where builds, engine and screens belong."""
        return list(self._free)

    async def start(self, emit: Emit) -> Task:
        """Probe, describe the task, measure the floor. Raises TaskRejected or EnvironmentLacking (one line each)."""
        try:
            level = await asyncio.to_thread(probe, self._trust)
            self._builder = await asyncio.to_thread(CpuBuilder, level, self._cache)
        except (SandboxUnavailable, CompilerMissing) as error:
            raise EnvironmentLacking(str(error)) from error
        # Event loop, policy and log stay off the core that is timed on.
        self._affinity = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self._free)
        self.sandbox_level = level.name
        name = cpu_name(Path("/proc/cpuinfo").read_text())
        for core in self._measured:
            emit(DeviceSeen(f"cpu{core}", "cpu", name, cores=1, note="timing"))
        for core in self._free:
            if core not in self._measured:
                emit(DeviceSeen(f"cpu{core}", "cpu", name, cores=1, note="builds"))
        opened: Opened | None = None
        for core in self._measured:
            station = Station(f"cpu{core}", core)
            self._stations.append(station)
            request = Open(
                device=station.device,
                source=self._source,
                path=self._path,
                case=self._case,
                core=core,
                other_cores=self._free,
                trust=self._trust,
                warm_modules=self._warm_modules,
            )
            try:
                opened = await station.open(request, emit)
            except StationDied as died:
                raise EnvironmentLacking(
                    f"the measuring station could not start: {died}; remedy: workbench doctor"
                ) from died
            self._idle.put_nowait(station)
        assert opened is not None
        self.delta = opened.delta
        return opened.task

    async def run(self, job: Job, emit: Emit) -> JobResult:
        """Build, verify, time, judge. Always ends with a VerdictReached among the facts."""
        library = ""
        if job.kind == "kernel":
            built = await self._build(job, emit)
            if not built.ok:
                return self._end(VerdictReached(job.candidate, "FAILED", reason=built.feedback), emit)
            library = built.library
        elif job.kind != "module":
            reason = f"candidates of kind {job.kind!r} cannot run on the cpu backend; known: kernel, module"
            return self._end(VerdictReached(job.candidate, "FAILED", reason=reason), emit)
        station = await self._station(job.other_than)
        try:
            return self._end(await self._judge(station, job, library, emit), emit)
        finally:
            self._idle.put_nowait(station)

    async def _station(self, other_than: str) -> Station:
        """An idle station; not that of the device `other_than` unless there is no other."""
        station = await self._idle.get()
        while station.device == other_than and len(self._stations) > 1:
            self._idle.put_nowait(station)
            # Whoever else waits goes first, and the other stations come to the head of the queue.
            await asyncio.sleep(0.05)
            station = await self._idle.get()
        return station

    async def _build(self, job: Job, emit: Emit) -> _Built:
        assert self._builder is not None
        async with self._quiet_reader(), self._build_slots:
            core = next((c for c in self._free if c not in self._building), self._free[0])
            self._building[core] = job.candidate
            device = f"cpu{core}"
            emit(StageStarted(job.candidate, "build", device))
            emit(ActivityChanged(device, "build", job.candidate))
            try:
                build = await self._builder.build(job.text, [core])
            finally:
                self._building.pop(core, None)
                emit(ActivityChanged(device, "idle"))
        emit(
            BuildFinished(job.candidate, build.ok, build.seconds, build.cached, build.sha256, build.log, build.feedback)
        )
        return _Built(build.ok, build.path, build.feedback)

    @contextlib.asynccontextmanager
    async def _quiet_reader(self):  # type: ignore[no-untyped-def]
        """Builds wait while a measurement with all cores goes on."""
        async with self._quiet:
            pass
        yield

    async def _judge(self, station: Station, job: Job, library: str, emit: Emit) -> VerdictReached:
        final = job.profile == "final"
        threads = self._threads if final and len(self._cores) > 1 and self._threads > 1 else 0
        request = Judge(
            candidate=job.candidate,
            kind=job.kind,
            text=job.text if job.kind == "module" else "",
            library=library,
            profile=job.profile,
            promising_above=job.promising_above,
            threads=threads,
            all_cores=self._cores,
        )

        def watched(event: Event) -> None:
            emit(event)
            if isinstance(event, StageStarted) and event.stage in ("verify", "time"):
                emit(ActivityChanged(station.device, event.stage, job.candidate))

        async with contextlib.AsyncExitStack() as stack:
            if threads:
                # The measurement with all cores must be alone: no new build starts, running ones are waited for.
                await stack.enter_async_context(self._quiet)
                for _ in range(len(self._free)):
                    await stack.enter_async_context(self._build_slots)
            try:
                if not station.running:
                    await station.revive(emit)
                return await station.judge(request, watched, job.deadline_s)
            except (StationDied, TaskRejected, EnvironmentLacking) as died:
                reason = f"the evaluation did not end: {died}"
                try:
                    await station.revive(emit)
                except (StationDied, TaskRejected, EnvironmentLacking) as worse:
                    emit(WarningRaised(f"station {station.device} could not be restarted: {worse}", "workbench doctor"))
                return VerdictReached(job.candidate, "FAILED", sandbox_level=self.sandbox_level, reason=reason)
            finally:
                emit(ActivityChanged(station.device, "idle"))

    def _end(self, verdict: VerdictReached, emit: Emit) -> JobResult:
        if not verdict.sandbox_level:
            verdict = msgspec.structs.replace(verdict, sandbox_level=self.sandbox_level)
        emit(verdict)
        return JobResult(verdict.candidate, verdict.verdict, verdict.speedup, verdict.reason)

    async def aclose(self) -> None:
        for station in self._stations:
            await station.kill()
        if self._affinity:
            os.sched_setaffinity(0, self._affinity)


class _Built(msgspec.Struct, frozen=True):
    ok: bool
    library: str
    feedback: str
