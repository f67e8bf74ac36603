"""What is said of a mutant: the referee's checks (no clock), a KernelBench-style check, and the search for a witness.

The one module of the bench that touches the referee. Everything untrusted runs in the referee's own caged workers.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench.benching.mutating import battery
from workbench.judging import TaskText
from workbench_engine.backends.cpu import CpuBuilder
from workbench_engine.referee import inputs, verify
from workbench_engine.referee.arena import Arena
from workbench_engine.referee.bench import Bench
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.reference import Reference
from workbench_engine.referee.worker_process import WorkerFailed
from workbench_engine.sandbox.level import SandboxLevel

KERNELBENCH_INPUTS = 5
KERNELBENCH_TOLERANCE = 1e-4
"""Correctness trials and fp32 tolerance (atol = rtol) of KernelBench's scripts."""

Outputs = list[NDArray[Any]]


class Built(Struct, frozen=True):
    """A file ready to be loaded; `fault` says why it is not. `library` is empty for modules."""

    kind: str
    text: str
    library: str = ""
    fault: str = ""


class Said(Struct, frozen=True):
    """`right` is what the check believes; `where` the input set that it stopped at; `seconds` of the check alone."""

    right: bool
    detail: str = ""
    where: str = ""
    seconds: float = 0.0


class Asked(Struct, frozen=True):
    """An input set of the battery with the truth, and what is kept of the honest kernel's answer, one an output."""

    checks: verify.CheckSet
    honest: tuple[battery.Own, ...]


class CheckBench:
    """One task opened for checking only. Raises TaskRejected when the task cannot be used."""

    def __init__(self, level: SandboxLevel, task: TaskText, cores: list[int], cache: Path, modules: bool) -> None:
        """`cores`: the last runs the code, the others build and start workers. `cache`: for compiled kernels."""
        self._core, self._others = cores[-1], cores[:-1] or cores
        self._builder = CpuBuilder(level, cache)
        self._bench = Bench(
            level=level,
            device=f"cpu{self._core}",
            source=task.source,
            path=str(task.path),
            case="",
            core=self._core,
            other_cores=self._others,
            warm_modules=modules,
            emit=lambda event: None,
            floor=False,
        )
        bench = self._bench
        # KernelBench compares models as their constructors leave them.
        self._plain = Reference(level, task.source, str(task.path), self._core, bench.protocol)
        self._plain.set_up(Arena([(bench.case, 1)], with_wide=True))
        self._small = Arena([(bench.case, 2)], with_wide=False)
        self._asked: dict[str, list[Asked]] = {}
        self._sets: list[verify.CheckSet] = []
        self._rng = np.random.default_rng(secrets.randbits(128))
        self._trials = [self._trial() for _ in range(KERNELBENCH_INPUTS)]

    def build(self, kind: str, text: str) -> Built:
        """Compile a kernel (a module needs none)."""
        if kind == "module":
            return Built(kind, text)
        made = asyncio.run(self._builder.build(text, self._others))
        return Built(kind, text, made.path, "" if made.ok else made.feedback)

    def referee(self, built: Built) -> Said:
        """The verify stage of a verdict: all checks and probes, with inputs that were drawn when the task opened."""
        bench = self._bench
        start = time.monotonic()
        candidate = None
        try:
            candidate = self._loaded(bench.arena, bench.reference, built)
            start = time.monotonic()
            checker = verify.Checker(
                candidate, bench.reference, self._rng, bench.check_deadline_s(), timed=bench.case.name
            )
            found = verify.verify(checker, bench.checks)
            if found.failure is None:
                found = bench.probes.ask(checker)
        except WorkerFailed as failed:
            return Said(False, str(failed), "died", time.monotonic() - start)
        finally:
            self._done(candidate)
        spent = time.monotonic() - start
        if found.failure is None:
            return Said(True, seconds=spent)
        return Said(False, found.failure.feedback, found.checks[-1].name if found.checks else "", spent)

    def kernelbench(self, built: Built) -> Said:
        """N(0, 1) inputs of the timed shape, initial parameters, allclose. Unwritten outputs hold NaN, which is more
        than KernelBench does."""
        bench = self._bench
        slot = self._small.slots_of(bench.case.name)[0]
        start = time.monotonic()
        candidate = None
        try:
            candidate = self._loaded(self._small, self._plain, built)
            for number, (given, wanted) in enumerate(self._trials):
                candidate.write_inputs(slot, given)
                self._small.poison(slot)
                candidate.run([slot], bench.check_deadline_s())
                candidate.collect()
                for got, want in zip(candidate.outputs(slot), wanted, strict=True):
                    # As torch.allclose(reference, candidate): the tolerance is relative to the candidate.
                    if not np.allclose(want, got, rtol=KERNELBENCH_TOLERANCE, atol=KERNELBENCH_TOLERANCE):
                        return Said(False, "not close", f"trial {number + 1}", time.monotonic() - start)
        except WorkerFailed as failed:
            return Said(False, str(failed), "died", time.monotonic() - start)
        finally:
            self._done(candidate)
        return Said(True, seconds=time.monotonic() - start)

    def witness(self, built: Built, honest: Built) -> battery.Difference | None:
        """Look for an input on which the mutant differs from its original; None when there is none in the battery."""
        key = honest.library or honest.text
        if key not in self._asked:
            self._asked[key] = self._answers(honest)
        bench = self._bench
        candidate = None
        try:
            candidate = self._loaded(bench.arena, bench.reference, built)
            for asked in self._asked[key]:
                outputs = self._run(candidate, asked.checks)
                found = self._differs(asked, outputs)
                if found is not None:
                    return found
                if not bench.arena.red_zones_intact():
                    bench.arena.mend_red_zones()
                    return battery.Difference(f"{asked.checks.name}: wrote outside", np.inf, 0)
        except WorkerFailed as failed:
            return battery.Difference(f"died: {failed}", np.inf, 0)
        finally:
            self._done(candidate)
        return None

    def _differs(self, asked: Asked, outputs: Outputs) -> battery.Difference | None:
        checks = asked.checks
        for got, honest, expected, spec in zip(
            outputs, asked.honest, checks.expected, checks.case.of("output"), strict=True
        ):
            found = battery.difference(
                got, honest, expected.truth, spec.dtype, spec.shape, checks.case.accumulate, checks.name
            )
            if found is not None:
                return found
        return None

    def _answers(self, honest: Built) -> list[Asked]:
        """The honest kernel's answers to the battery. Raises WorkerFailed."""
        bench = self._bench
        if not self._sets:
            self._sets = list(self._battery())
        candidate = self._loaded(bench.arena, bench.reference, honest)
        try:
            return [Asked(checks, self._own(checks, self._run(candidate, checks))) for checks in self._sets]
        finally:
            self._done(candidate)

    @staticmethod
    def _own(checks: verify.CheckSet, outputs: Outputs) -> tuple[battery.Own, ...]:
        return tuple(
            battery.own(got, expected.truth, spec.dtype, spec.shape)
            for got, expected, spec in zip(outputs, checks.expected, checks.case.of("output"), strict=True)
        )

    def _battery(self) -> list[verify.CheckSet]:
        bench = self._bench
        arena = bench.reference.arena
        assert arena is not None
        cases = {case.name: case for case in (*bench.task.hidden, bench.case)}
        sets = []
        for name, label in battery.plan(list(cases), bench.case.name):
            case = cases[name]
            if any(s.domain == "fixed" for s in case.of("input")):
                continue
            given = [battery.contents(spec, label, self._rng) for spec in case.of("input")]
            made = verify.build(bench.reference, arena, case, label, self._rng, given)
            if made is not None:
                sets.append(made)
        return sets

    def _run(self, candidate: Candidate, checks: verify.CheckSet) -> Outputs:
        arena = self._bench.arena
        slot = arena.slots_of(checks.case.name)[0]
        candidate.write_inputs(slot, checks.inputs)
        arena.poison(slot)
        candidate.run([slot], self._bench.check_deadline_s())
        candidate.collect()
        return [one.copy() for one in candidate.outputs(slot)]

    def _loaded(self, arena: Arena, reference: Reference, built: Built) -> Candidate:
        """A fresh worker with the file in it. Raises WorkerFailed when that fails twice: once may be the machine."""
        for last in (False, True):
            candidate = Candidate(self._bench.warm.take(built.kind), arena, self._bench.protocol)
            try:
                candidate.load(reference, built.kind, built.library or None, built.text, [self._core], threads=1)
                return candidate
            except WorkerFailed:
                self._done(candidate)
                if last:
                    raise
        raise AssertionError("a second failure was raised")

    def _done(self, candidate: Candidate | None) -> None:
        if candidate is not None:
            candidate.close()
        self._bench.warm.refill()

    def _trial(self) -> tuple[list[NDArray[Any]], Outputs]:
        """(inputs, what the untouched reference answers) of one KernelBench-style trial."""
        arena = self._plain.arena
        assert arena is not None
        case = self._bench.case
        slot = arena.slots_of(case.name)[0]
        given = [inputs.contents(spec, inputs.TIMED, self._rng) for spec in case.of("input")]
        for place, values in zip(slot.inputs, given, strict=True):
            arena.view(place)[...] = values
        return given, self._plain.outputs(slot)

    def close(self) -> None:
        self._plain.close()
        self._small.close()
        self._bench.close()
