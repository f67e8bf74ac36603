"""One device's bench: the reference set up, workers kept warm, candidates verified, timed and judged one at a time."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from workbench_engine.referee.arena import Arena, ring_length
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.ceilings import Ceilings
from workbench_engine.referee.chain import Chain, Slope
from workbench_engine.referee.inputs import Bank
from workbench_engine.referee.measure import PairTimer, calls_per_pair
from workbench_engine.referee.probes import Probes
from workbench_engine.referee.protocol import Protocol
from workbench_engine.referee.reference import Reference
from workbench_engine.referee.sampling import Series
from workbench_engine.referee.statistics import Array, between_processes, floor_from_runs
from workbench_engine.referee.trial import Subject, Trial
from workbench_engine.referee.verify import build_all
from workbench_engine.referee.warm import WarmWorkers
from workbench_engine.referee.worker_process import Worker, WorkerFailed, kernel_worker, module_worker
from workbench_engine.referee.workers import wire
from workbench_engine.sandbox.level import SandboxLevel
from workbench_engine.tasks.contract import ShapeCase, Task, TaskRejected
from workbench_sessions.events import Event, FloorMeasured, VerdictReached

Emit = Callable[[Event], None]


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
        self.device = device
        self.source = source
        self.core = core
        self.other_cores = other_cores
        self.emit = emit
        self.protocol = protocol or Protocol()
        self._rng = np.random.default_rng(secrets.randbits(128))
        # Pace and twins import torch while the reference does, on another core.
        self._pace_worker = self._start_twin()
        self._twins = [self._start_twin() for _ in range(self.protocol.floor_twins if floor else 0)]
        try:
            self.reference = Reference(level, source, path, core, self.protocol)
            self.task = self.reference.task
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
        self.warm = WarmWorkers(level, other_cores, modules=warm_modules)
        self._wide_pace: Candidate | None = None
        self._nothing: Candidate | None = None
        self.delta = self.protocol.least_delta
        self.between = 0.0

    def _set_up(self, case: str, path: str) -> None:
        cases = self.task.cases
        name = case or ("cpu" if "cpu" in cases else next(iter(cases)))
        if name not in cases:
            raise TaskRejected(f"{path}: no case {name!r}; it has {', '.join(cases)}")
        self.case: ShapeCase = cases[name]
        shapes = [*self.task.hidden, self.case]
        arena = Arena([(s, 1) for s in shapes], with_wide=True)
        self.reference.set_up(arena)
        constructed = {c.name: [arena.view(p).copy() for p in arena.slots_of(c.name)[0].state] for c in shapes}
        self.reference.move_state(self._rng)
        self.reference_s = self._time_alone(arena)
        self.calls = calls_per_pair(self.reference_s, self.protocol)
        ring = ring_length(self.case, self.calls, self.protocol.ring_bytes)
        self.checks = build_all(self.reference, arena, self.task, name, self._rng)
        if not self.checks:
            raise TaskRejected(
                f"{path}: the reference is not finite on any of the input distributions; nothing to check"
            )
        timed = [c for c in self.checks if c.case.name == name]
        self.probes = Probes(self.reference, arena, self.task, timed or self.checks[-1:], constructed).build(self._rng)
        self.arena = Arena([*((s, 2) for s in self.task.hidden), (self.case, ring)], with_wide=False)
        self.pace = Candidate(self._pace_worker, Arena([(self.case, ring)], with_wide=False), self.protocol)
        self.pace.load(self.reference, "module", None, self.source, [self.core], threads=1)
        specs = self.case.of("input")
        fixed = any(s.domain == "fixed" for s in specs)
        own = self.reference.own_inputs(arena.slots_of(name)[0]) if fixed else []
        self.banks = [Bank(spec, self._rng, own[i] if spec.domain == "fixed" else None) for i, spec in enumerate(specs)]
        self.ceilings = Ceilings.measure(self.case.bytes_moved, self.case.flops)

    def _time_alone(self, arena: Arena) -> float:
        """Seconds of one reference call, the least of a few: only to choose the inner batch and deadlines."""
        slot = arena.slots_of(self.case.name)[0]
        payload = wire.pack_slots([slot.index])
        worker = self.reference.worker
        return min(worker.timed_run(payload, self.protocol.setup_deadline_s)[0] for _ in range(5))

    # --- the floor -----------------------------------------------------------------------------------------------

    def measure_floor(self) -> None:
        """A/A: the pace against copies of itself in a candidate's place; emits FloorMeasured.

        Several copies, because part of the difference between two processes (where their pages lie) stays for life.
        """
        protocol = self.protocol
        workers = self._twins or [self._start_twin() for _ in range(protocol.floor_twins)]
        self._twins = []
        runs: list[Array] = []
        try:
            for worker in workers:
                runs += self._twin_runs(Candidate(worker, self.arena, protocol), protocol)
        except WorkerFailed as failure:
            raise TaskRejected(f"the reference cannot be timed against itself: {failure}") from failure
        finally:
            for worker in workers:
                worker.close()
        medians = [float(np.median(d)) for d in runs]
        self.delta = floor_from_runs(medians, protocol.least_delta)
        self.between = between_processes(runs)
        noisy = self.delta > protocol.noisy_delta
        self.emit(FloorMeasured(self.device, self.delta, medians, too_noisy=noisy, between=self.between))

    def _start_twin(self) -> Worker:
        return module_worker(self.level, self.other_cores, threads=1, entry="Model")

    def _twin_runs(self, twin: Candidate, protocol: Protocol) -> list[Array]:
        twin.load(self.reference, "module", None, self.source, [self.core], threads=1)
        timer = self.timer(twin, self._rng)
        timer.warm_up(3)
        runs = []
        for _ in range(protocol.floor_runs // protocol.floor_twins):
            series = Series.of([timer.pair(check=False) for _ in range(protocol.floor_pairs)])
            runs.append(series.d)
            self.emit(series.event("", self.device, "floor", timer.calls, 1))
        return runs

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
        subject = Subject(candidate, kind, text, library)
        return Trial(self, subject, profile, promising_above).verdict(threads, all_cores)

    def check_deadline_s(self) -> float:
        """A check may take 1,000 reference calls (CUDA-L1's limit for "executable"), between 2 and 20 s."""
        return min(self.protocol.call_deadline_s, max(2.0, 1000 * self.reference_s))

    def timer(self, subject: Candidate, rng: np.random.Generator, pace: Candidate | None = None) -> PairTimer:
        """Pairs of `subject` against the pace (or another copy of the reference)."""
        return PairTimer(
            pace or self.pace,
            subject,
            self.case,
            self.banks,
            self.calls,
            self.reference_s,
            self.protocol,
            rng,
            self.task.declared_precision,
        )

    def chain(self, rng: np.random.Generator) -> Chain:
        """Chains of dependent calls on the timed case."""
        return Chain(self.case, self.banks, rng, self.protocol.call_deadline_s)

    def chain_overhead(self, chain: Chain, kind: str, pace_s: float) -> Slope:
        """What chaining itself costs a call, in seconds: for kernels measured with a call that does nothing, for
        modules the reference's own chain less its timed call (`pace_s`)."""
        if kind == "kernel":
            if self._nothing is None:
                self._nothing = Candidate(kernel_worker(self.level, self.other_cores, 1), self.arena, self.protocol)
                self._nothing.load(self.reference, "nothing", None, "", [self.core], threads=1)
            return chain.slope(self._nothing, 0.0)
        slope = chain.slope(self.pace, pace_s)
        return Slope(max(0.0, slope.seconds - pace_s), slope.noise_s)

    def threaded_pace(self, threads: int, cores: list[int]) -> Candidate:
        """The reference with several threads: started at the first confirmed winner, then kept."""
        if self._wide_pace is None:
            worker = module_worker(self.level, self.other_cores, threads, entry="Model")
            self._wide_pace = Candidate(worker, self.pace.arena, self.protocol)
            self._wide_pace.load(self.reference, "module", None, self.source, cores, threads)
        return self._wide_pace

    def close(self) -> None:
        self.warm.close()
        self.pace.close()
        for kept in (self._wide_pace, self._nothing):
            if kept is not None:
                kept.close()
        self.reference.close()
        self.arena.close()
