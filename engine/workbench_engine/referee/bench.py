"""One device's bench: the reference set up, workers kept warm, candidates verified, timed and judged one at a time."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import numpy as np
from msgspec import Struct, structs

from workbench_engine.referee import verify as verification
from workbench_engine.referee.arena import Arena, ring_length
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.ceilings import Ceilings
from workbench_engine.referee.inputs import Bank
from workbench_engine.referee.judge import roofline_s, verdict_of
from workbench_engine.referee.measure import PairTimer, TimedWrong, calls_per_pair
from workbench_engine.referee.protocol import PROFILES, Profile, Protocol
from workbench_engine.referee.reference import Reference
from workbench_engine.referee.sampling import Series, sample_pairs
from workbench_engine.referee.statistics import estimate, floor_from_runs
from workbench_engine.referee.warm import WarmWorkers
from workbench_engine.referee.worker_process import Worker, WorkerFailed, module_worker
from workbench_engine.referee.workers import wire
from workbench_engine.sandbox.level import SandboxLevel
from workbench_engine.tasks.contract import ShapeCase, Task, TaskRejected
from workbench_sessions.events import (
    Event,
    FindingRaised,
    FloorMeasured,
    StageStarted,
    VerdictReached,
    VerifyFinished,
)

THREADS_PAIRS = 20
Emit = Callable[[Event], None]
IMPOSSIBLE = 0.5
"""A time below this share of what the measured ceilings allow is rejected, with the arithmetic shown."""


class Opened(Struct):
    """What the engine learns when a task is open."""

    task: Task
    case: str
    delta: float
    level: str


class Bench:
    """Single-threaded. Raises TaskRejected while opening; `judge` always ends with a verdict."""

    def __init__(
        self,
        level: SandboxLevel,
        device: str,
        source: str,
        path: str,
        case: str,
        core: int,
        other_cores: list[int],
        warm_modules: bool,
        emit: Emit,
        floor: bool = True,
        protocol: Protocol | None = None,
    ) -> None:
        self.level = level
        self._device = device
        self._source = source
        self._core = core
        self._other_cores = other_cores
        self._emit = emit
        self._protocol = protocol or Protocol()
        self._rng = np.random.default_rng(secrets.randbits(128))
        # Pace and twins import torch while the reference does, on another core.
        self._pace_worker = self._start_twin()
        self._twins = [self._start_twin() for _ in range(self._protocol.floor_twins if floor else 0)]
        try:
            self._reference = Reference(level, source, path, core, self._protocol)
            self.task = self._reference.task
            if self.task.stochastic:
                raise TaskRejected(
                    f"{path}: the output differs between two runs on the same inputs (random numbers in forward); "
                    "a candidate could not be compared: take the randomness out, or pass it in as an input"
                )
            self._set_up(case, path)
        except (WorkerFailed, TaskRejected) as failure:
            for worker in (self._pace_worker, *self._twins):
                worker.close()
            if isinstance(failure, TaskRejected):
                raise
            raise TaskRejected(f"{path}: the reference does not run: {failure}") from failure
        self._warm = WarmWorkers(level, other_cores, modules=warm_modules)
        self._wide_pace: Candidate | None = None
        self.delta = self._protocol.least_delta

    def _set_up(self, case: str, path: str) -> None:
        cases = self.task.cases
        name = case or ("cpu" if "cpu" in cases else next(iter(cases)))
        if name not in cases:
            raise TaskRejected(f"{path}: no case {name!r}; it has {', '.join(cases)}")
        self.case: ShapeCase = cases[name]
        shapes = [*self.task.hidden, self.case]
        arena = Arena([(s, 1) for s in shapes], with_wide=True)
        self._reference.set_up(arena)
        self._reference.move_state(self._rng)
        self._reference_s = self._time_alone(arena)
        self._calls = calls_per_pair(self._reference_s, self._protocol)
        ring = ring_length(self.case, self._calls, self._protocol.ring_bytes)
        self._checks = verification.build_all(self._reference, arena, self.task, name, self._rng)
        if not self._checks:
            raise TaskRejected(
                f"{path}: the reference is not finite on any of the input distributions; nothing to check"
            )
        self._arena = Arena([*((s, 1) for s in self.task.hidden), (self.case, ring)], with_wide=False)
        self._pace = Candidate(self._pace_worker, Arena([(self.case, ring)], with_wide=False), self._protocol)
        self._pace.load(self._reference, "module", None, self._source, [self._core], threads=1)
        specs = self.case.of("input")
        fixed = any(s.domain == "fixed" for s in specs)
        own = self._reference.own_inputs(arena.slots_of(name)[0]) if fixed else []
        self._banks = [
            Bank(spec, self._rng, own[i] if spec.domain == "fixed" else None) for i, spec in enumerate(specs)
        ]
        self._ceilings = Ceilings.measure(self.case.bytes_moved, self.case.flops)

    def _time_alone(self, arena: Arena) -> float:
        """Seconds of one reference call, the least of a few: only to choose the inner batch and deadlines."""
        slot = arena.slots_of(self.case.name)[0]
        payload = wire.pack_slots([slot.index])
        worker = self._reference.worker
        return min(worker.timed_run(payload, self._protocol.setup_deadline_s)[0] for _ in range(5))

    # --- the floor -----------------------------------------------------------------------------------------------

    def measure_floor(self) -> None:
        """A/A: the pace against copies of itself in a candidate's place; emits FloorMeasured.

        Several copies, because part of the difference between two processes (where their pages lie) stays for life.
        """
        protocol = self._protocol
        workers = self._twins or [self._start_twin() for _ in range(protocol.floor_twins)]
        self._twins = []
        medians: list[float] = []
        try:
            for worker in workers:
                medians += self._twin_medians(Candidate(worker, self._arena, protocol), protocol)
        except WorkerFailed as failure:
            raise TaskRejected(f"the reference cannot be timed against itself: {failure}") from failure
        finally:
            for worker in workers:
                worker.close()
        self.delta = floor_from_runs(medians, protocol.least_delta)
        self._emit(FloorMeasured(self._device, self.delta, medians, too_noisy=self.delta > protocol.noisy_delta))

    def _start_twin(self) -> Worker:
        return module_worker(self.level, self._other_cores, threads=1, entry="Model")

    def _twin_medians(self, twin: Candidate, protocol: Protocol) -> list[float]:
        twin.load(self._reference, "module", None, self._source, [self._core], threads=1)
        timer = self._timer(twin, self._rng)
        timer.warm_up(3)
        medians = []
        for _ in range(protocol.floor_runs // protocol.floor_twins):
            series = Series.of([timer.pair(check=False) for _ in range(protocol.floor_pairs)])
            medians.append(float(np.median(series.d)))
            self._emit(series.event("", self._device, "floor", timer.calls, 1))
        return medians

    # --- one candidate -------------------------------------------------------------------------------------------

    def judge(
        self,
        candidate: str,
        kind: str,
        text: str,
        library: str,
        profile: str,
        promising_above: float,
        threads: int,
        all_cores: list[int],
    ) -> VerdictReached:
        """Verify, time, decide. Facts are emitted as they come; the verdict is returned (not emitted)."""
        care = PROFILES[profile]
        final = profile == "final"
        start = time.monotonic()
        checks_done = False
        subject = Candidate(self._warm.take(kind), self._arena, self._protocol)
        seed = secrets.randbits(128)
        rng = np.random.default_rng(seed)
        try:
            self._emit(StageStarted(candidate, "verify", self._device))
            subject.load(self._reference, kind, library or None, text, [self._core], threads=1)
            checks = self._checks
            if care.fresh_checks:
                assert self._reference.arena is not None
                checks = verification.build_all(self._reference, self._reference.arena, self.task, self.case.name, rng)
            done, failure = verification.verify(subject, self._reference, checks, rng, self._check_deadline_s())
            checks_done = True
            feedback = failure.feedback if failure else ""
            self._emit(VerifyFinished(candidate, failure is None, time.monotonic() - start, done, feedback))
            if failure:
                if failure.finding:
                    self._emit(FindingRaised(candidate, failure.finding, "cheat", failure.feedback))
                return self._plain(candidate, "WRONG", failure.feedback)
            self._emit(StageStarted(candidate, "time", self._device))
            series = self._time(subject, candidate, care, promising_above, rng, "final" if final else "search")
            verdict = self._decide(candidate, series, care, rng)
        except WorkerFailed as failed:
            if not checks_done:
                reason = f"could not be verified: {failed}"
                self._emit(VerifyFinished(candidate, False, time.monotonic() - start, [], reason))
            return self._plain(candidate, "FAILED", str(failed))
        except TimedWrong as wrong:
            self._emit(FindingRaised(candidate, "timed-call-wrong", "cheat", str(wrong)))
            return self._plain(candidate, "CHEATING", str(wrong))
        finally:
            subject.close()
            self._warm.refill()
        if threads > 1 and verdict.verdict == "FASTER":
            ratio = self._with_threads(candidate, kind, text, library, threads, all_cores, rng)
            verdict = structs.replace(verdict, threads=threads, threads_speedup=ratio)
        return structs.replace(verdict, confirmed=final, seed=f"{seed:032x}")

    def _plain(self, candidate: str, verdict: str, reason: str) -> VerdictReached:
        return VerdictReached(candidate, verdict, sandbox_level=self.level.name, reason=reason)  # type: ignore[arg-type]

    def _check_deadline_s(self) -> float:
        """A check may take 1,000 reference calls (CUDA-L1's limit for "executable"), between 2 and 20 s."""
        return min(self._protocol.call_deadline_s, max(2.0, 1000 * self._reference_s))

    def _timer(self, subject: Candidate, rng: np.random.Generator, pace: Candidate | None = None) -> PairTimer:
        return PairTimer(
            pace or self._pace,
            subject,
            self.case,
            self._banks,
            self._calls,
            self._reference_s,
            self._protocol,
            rng,
        )

    def _time(
        self,
        subject: Candidate,
        candidate: str,
        care: Profile,
        promising_above: float,
        rng: np.random.Generator,
        phase: str,
    ) -> Series:
        timer = self._timer(subject, rng)
        timer.warm_up()
        series = Series()
        for batch in sample_pairs(timer, care, promising_above, self.delta, rng):
            series = series.extended(batch)
            self._emit(Series.of(batch).event(candidate, self._device, phase, timer.calls, 1))
        timer.last_check()
        return series

    def _decide(self, candidate: str, series: Series, care: Profile, rng: np.random.Generator) -> VerdictReached:
        result = estimate(series.d, rng, care.resamples)
        reference_s = float(np.median(series.reference_s))
        candidate_s = float(np.median(series.candidate_s))
        verdict = verdict_of(result, self.delta)
        if verdict == "FASTER" and len(series.pairs) < care.claim_pairs:
            verdict = "AMBIGUOUS"
        least_s = roofline_s(
            self.case.bytes_moved, self.case.flops, self._ceilings.bandwidth, self._ceilings.flops_rate
        )
        fraction = least_s / candidate_s if least_s else None
        reason = ""
        if fraction is not None and least_s is not None and fraction > 1 / IMPOSSIBLE:
            verdict = "CHEATING"
            reason = (
                f"{candidate_s * 1e6:.1f} µs a call, but {self.case.bytes_moved} bytes at "
                f"{self._ceilings.bandwidth or 0:.3g} B/s and {self.case.flops} flops at "
                f"{self._ceilings.flops_rate or 0:.3g} flop/s need {least_s * 1e6:.1f} µs"
            )
            self._emit(FindingRaised(candidate, "faster-than-roofline", "cheat", reason))
        if reference_s > 1.5 * max(self._reference_s, 1e-9) and self._calls == 1:
            text = f"the reference ran {reference_s / self._reference_s:.2f}× slower beside this candidate than alone"
            self._emit(FindingRaised(candidate, "reference-slowed", "warning", text))
        return VerdictReached(
            candidate=candidate,
            verdict=verdict,
            speedup=result.speedup,
            lower=float(np.exp(result.low)),
            upper=float(np.exp(result.high)),
            pairs=len(series.pairs),
            reference_s=reference_s,
            candidate_s=candidate_s,
            delta=self.delta,
            roofline_fraction=fraction,
            sandbox_level=self.level.name,
            reason=reason,
        )

    def _with_threads(
        self,
        candidate: str,
        kind: str,
        text: str,
        library: str,
        threads: int,
        all_cores: list[int],
        rng: np.random.Generator,
    ) -> float | None:
        """Speedup when both sides may use `threads` threads on `all_cores`: shown beside the verdict, never instead."""
        subject = Candidate(self._warm.take(kind, threads), self._arena, self._protocol)
        pace = self._threaded_pace(threads, all_cores)
        try:
            subject.load(self._reference, kind, library or None, text, all_cores, threads)
            timer = self._timer(subject, rng, pace)
            timer.warm_up(3)
            series = Series.of([timer.pair() for _ in range(THREADS_PAIRS)])
            self._emit(series.event(candidate, self._device, "threads", timer.calls, threads))
            return float(np.exp(np.median(series.d)))
        except (WorkerFailed, TimedWrong) as failed:
            self._emit(FindingRaised(candidate, "threads-failed", "warning", f"with {threads} threads: {failed}"))
            return None
        finally:
            subject.close()

    def _threaded_pace(self, threads: int, cores: list[int]) -> Candidate:
        """The reference with several threads: started at the first confirmed winner, then kept."""
        if self._wide_pace is None:
            worker = module_worker(self.level, self._other_cores, threads, entry="Model")
            self._wide_pace = Candidate(worker, self._pace.arena, self._protocol)
            self._wide_pace.load(self._reference, "module", None, self._source, cores, threads)
        return self._wide_pace

    def close(self) -> None:
        self._warm.close()
        self._pace.close()
        if self._wide_pace is not None:
            self._wide_pace.close()
        self._reference.close()
        self._arena.close()
