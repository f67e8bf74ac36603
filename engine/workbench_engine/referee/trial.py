"""One candidate's way through the referee: verify, probe, time, gate, second clock, verdict."""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from workbench_engine.referee import gates, verify
from workbench_engine.referee.advice import advising, coverage
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.ceilings import Ceilings
from workbench_engine.referee.chain import ChainBroken
from workbench_engine.referee.findings import BY_CODE
from workbench_engine.referee.judge import roofline_s, verdict_of
from workbench_engine.referee.measure import PairTimer, TimedWrong
from workbench_engine.referee.precision import SHOWN
from workbench_engine.referee.protocol import PROFILES
from workbench_engine.referee.sampling import Series, sample_pairs
from workbench_engine.referee.statistics import estimate
from workbench_engine.referee.stopwatch import Stopwatch
from workbench_engine.referee.tensors import to_float64
from workbench_engine.referee.tolerance import Expected, compare
from workbench_engine.referee.worker_process import WorkerFailed
from workbench_sessions.events import Check, FindingRaised, StageStarted, Value, Verdict, VerdictReached, VerifyFinished

if TYPE_CHECKING:
    from workbench_engine.referee.bench import Bench

THREADS_PAIRS = 20
IMPOSSIBLE = 0.5
"""A time below this share of what the measured ceilings allow is rejected, with the arithmetic shown."""


class Subject(Struct, frozen=True):
    """What is judged: its name in the session, its kind, the file, and for a kernel the shared object's path."""

    candidate: str
    kind: str
    text: str
    library: str


class Caught(Exception):
    """The candidate is dishonest: `code` names the mechanism, `str()` the evidence."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Trial:
    """One use of one worker on a bench. Facts are emitted on the way; `verdict` always returns one."""

    def __init__(self, bench: Bench, subject: Subject, profile: str, promising_above: float) -> None:
        self._bench = bench
        self._subject = subject
        self._final = profile == "final"
        self._care = PROFILES[profile]
        self._promising_above = promising_above
        self._start = time.monotonic()
        self._watch = Stopwatch()
        self._seed = secrets.randbits(128)
        self._rng = np.random.default_rng(self._seed)
        self._verified = False
        self._doubt = ""
        self._worker = bench.warm.take(subject.kind)
        self._candidate = Candidate(self._worker, bench.arena, bench.protocol)

    def verdict(self, threads: int, all_cores: list[int]) -> VerdictReached:
        """Everything; then, for a confirmed winner, the same with several threads beside it."""
        bench = self._bench
        try:
            reached = self._reach()
        except WorkerFailed as failed:
            reached = self._failed(failed)
        except TimedWrong as wrong:
            self.find(wrong.code, str(wrong), "cheat")
            reached = self._plain("CHEATING", str(wrong))
        except Caught as caught:
            self.find(caught.code, str(caught), "cheat")
            reached = self._plain("CHEATING", str(caught))
        finally:
            self._candidate.close()
            bench.warm.refill()
            self._watch.lap("end of the worker")
        if threads > 1 and reached.verdict == "FASTER":
            ratio = self._with_threads(threads, all_cores)
            self._watch.lap("all cores")
            reached = structs.replace(reached, threads=threads, threads_speedup=ratio)
        spent_s = dict(self._watch.laps_s)
        return structs.replace(reached, confirmed=self._final, seed=f"{self._seed:032x}", spent_s=spent_s)

    def find(self, code: str, text: str, severity: str = "", **evidence: Value) -> None:
        """Emit a finding, as grave as its kind says unless `severity` does."""
        kind = BY_CODE[code]
        grave = severity or kind.severity
        self._bench.emit(FindingRaised(self._subject.candidate, code, grave, text, dict(evidence)))  # type: ignore[arg-type]

    # --- the stages ----------------------------------------------------------------------------------------------

    def _reach(self) -> VerdictReached:
        bench, subject, candidate = self._bench, self._subject, self._candidate
        bench.emit(StageStarted(subject.candidate, "verify", bench.device))
        if subject.kind == "kernel" and bench.task.mode == "both":
            raise WorkerFailed("this task declares MODE = 'both', and a kernel has no mode: give a module", "refused")
        candidate.load(bench.reference, subject.kind, subject.library or None, subject.text, [bench.core], threads=1)
        self._watch.lap("start of the worker")
        found = self._check()
        precision = found.precision.shown if found.precision else ""
        feedback = found.failure.feedback if found.failure else ""
        took = time.monotonic() - self._start
        bench.emit(
            VerifyFinished(subject.candidate, found.failure is None, took, found.checks, feedback, precision=precision)
        )
        self._verified = True
        if found.failure:
            return self._wrong(found.failure)
        if found.lowered:
            lower, declared = SHOWN[found.lowered], bench.task.declared_precision
            self.find("precision", f"right only to the tolerance of {lower}; the task declares {declared}")
        elif found.precision and not _same_class(found.precision.name, bench.task.declared_precision):
            self.find("precision", f"its errors are those of {precision} ({found.precision.error:.2g} over the output)")
        self._tripwires()
        self._watch.lap("tripwires")
        bench.emit(StageStarted(subject.candidate, "time", bench.device))
        timer = bench.timer(candidate, self._rng)
        series = self._time(timer)
        self._gates(timer, series)
        reached = self._decide(series)
        self._watch.lap("decision")
        if self._final and reached.verdict == "FASTER":
            self._two_clocks(series)
            self._grows_with_size(series)
            self._watch.lap("second clock")
        self._tripwires()
        self._watch.lap("tripwires")
        if subject.kind == "module" and (self._final or bench.task.library == "forbid"):
            # Last, because the profiler itself changes what the tripwires watch.
            self._whose_work()
            self._watch.lap("profile")
        if self._doubt and reached.verdict == "FASTER":
            reached = structs.replace(reached, verdict="AMBIGUOUS", reason=self._doubt)
        return reached

    def _check(self) -> verify.Verified:
        bench = self._bench
        checks = bench.checks
        if self._care.fresh_checks:
            assert bench.reference.arena is not None
            checks = verify.build_all(bench.reference, bench.reference.arena, bench.task, bench.case.name, self._rng)
            self._watch.lap("fresh inputs")
        checker = verify.Checker(
            self._candidate, bench.reference, self._rng, bench.check_deadline_s(), timed=bench.case.name
        )
        done: list[Check] = []
        for found in (verify.verify(checker, checks), None):
            self._watch.lap("checks")
            found = found or bench.probes.ask(checker)
            done += found.checks
            if found.failure is not None:
                failure = found.failure
                if not failure.finding or BY_CODE[failure.finding].severity == "info":
                    mistaken = bench.probes.mistaken_for(checker)
                    failure = verify.Failure(failure.feedback, mistaken or failure.finding)
                return verify.Verified(done, failure, checker.precision, checker.lowered)
        self._watch.lap("probes")
        return verify.Verified(done, None, checker.precision, checker.lowered)

    def _time(self, timer: PairTimer) -> Series:
        bench = self._bench
        activity = self._worker.activity
        timer.warm_up()
        activity.extra()
        self._watch.lap("warm-up")
        series = Series()
        phase = "final" if self._final else "search"
        for batch in sample_pairs(timer, self._care, self._promising_above, bench.delta, self._rng):
            series = series.extended(batch)
            bench.emit(Series.of(batch).event(self._subject.candidate, bench.device, phase, timer.calls, 1))
            activity.extra()
        self._watch.lap("pairs")
        timer.last_check()
        self._watch.lap("last check")
        return series

    def _tripwires(self) -> None:
        """What the candidate left changed in its process, and processes it left beside it."""
        for code, text in self._candidate.differences():
            kind = BY_CODE.get(code)
            if kind is None:
                continue
            if kind.severity == "cheat":
                raise Caught(code, text)
            self.find(code, text)
        strangers = self._worker.activity.extra()
        if strangers:
            self.find("extra-process", f"{len(strangers)} processes of its own live on beside its worker")

    def _gates(self, timer: PairTimer, series: Series) -> None:
        """Raise Caught where a clock contradicts, note a doubt where the series looks odd."""
        mean_timed_s = float(np.mean([b.timed_s for b in timer.blocks])) if timer.blocks else 0.0
        for closed in (
            # A kernel is asked for nothing between its calls; what the reference's process needs there is no excuse.
            gates.hidden_work(timer.blocks, timer.pace_blocks if self._worker.returns_tensors else []),
            gates.lazy_answers(timer.brought_s, timer.pace_brought_s, mean_timed_s),
            gates.helpers(timer.blocks),
            gates.false_claim(timer.blocks),
            gates.work_outside(timer.blocks, timer.pace_blocks),
        ):
            if closed is not None:
                raise Caught(closed.code, closed.text)
        two = gates.bimodal(series.candidate_s)
        if two is not None:
            self._doubt = two.text
            self.find(two.code, two.text)

    def _decide(self, series: Series) -> VerdictReached:
        bench = self._bench
        case = bench.case
        result = estimate(series.d, self._rng, self._care.resamples, between=bench.between)
        reference_s = float(np.median(series.reference_s))
        candidate_s = float(np.median(series.candidate_s))
        verdict = verdict_of(result, bench.delta)
        if verdict == "FASTER" and len(series.pairs) < self._care.claim_pairs:
            verdict = "AMBIGUOUS"
        fraction, least_s = self._of_roofline(candidate_s)
        if fraction is not None and fraction > 1 / IMPOSSIBLE:
            # Before anybody is accused the ceilings are measured again: the first time may have been a bad moment.
            bench.ceilings = bench.ceilings.raised(Ceilings.measure(case.bytes_moved, case.flops))
            fraction, least_s = self._of_roofline(candidate_s)
        ceilings = bench.ceilings
        reason = ""
        if fraction is not None and least_s is not None and fraction > 1 / IMPOSSIBLE:
            verdict = "CHEATING"
            reason = (
                f"{candidate_s * 1e6:.1f} µs a call, but {case.bytes_moved} bytes at "
                f"{ceilings.bandwidth or 0:.3g} B/s and {case.flops} flops at "
                f"{ceilings.flops_rate or 0:.3g} flop/s need {least_s * 1e6:.1f} µs"
            )
            self.find("faster-than-roofline", reason)
        return VerdictReached(
            candidate=self._subject.candidate,
            verdict=verdict,
            speedup=result.speedup,
            lower=float(np.exp(result.low)),
            upper=float(np.exp(result.high)),
            pairs=len(series.pairs),
            reference_s=reference_s,
            candidate_s=candidate_s,
            delta=bench.delta,
            roofline_fraction=fraction,
            sandbox_level=bench.level.name,
            reason=reason,
        )

    def _of_roofline(self, candidate_s: float) -> tuple[float | None, float | None]:
        """(share of the roofline reached, least seconds that the ceilings allow)."""
        case, ceilings = self._bench.case, self._bench.ceilings
        least_s = roofline_s(case.bytes_moved, case.flops, ceilings.bandwidth, ceilings.flops_rate)
        return (least_s / candidate_s if least_s else None), least_s

    def _whose_work(self) -> None:
        """Labels for a module: is its time spent in a library, did its own compiled code run? Raises Caught where
        the task forbids to leave the work to a library."""
        bench, subject = self._bench, self._subject
        slot = bench.arena.slots_of(bench.case.name)[0]
        carries = advising.carries_compiled_code(subject.text, subject.kind)
        try:
            found = coverage.coverage(coverage.read_profile(self._candidate.profile(slot)), carries)
        except ValueError:
            self.find("no-custom-kernel", "its worker gave no readable profile")
            return
        for label in coverage.as_findings(subject.candidate, found):
            bench.emit(label)
        if bench.task.library == "forbid" and (found.labels or not carries):
            text = found.labels[0].text if found.labels else "it brings no compiled code of its own"
            raise Caught("library-forbidden", f"the task forbids to leave the work to a library: {text}")

    def _two_clocks(self, series: Series) -> None:
        """The chain's slope against the timed calls, and one of its answers in full. Raises Caught."""
        bench = self._bench
        if len(bench.arena.slots_of(bench.case.name)) < 2:
            return
        chain = bench.chain(self._rng)
        try:
            slope = chain.slope(self._candidate, float(np.median(series.candidate_s)))
            overhead = bench.chain_overhead(chain, self._subject.kind, float(np.median(series.reference_s)))
            _, slots, given = chain.run(self._candidate, min(3, len(bench.arena.slots_of(bench.case.name))))
        except ChainBroken as broken:
            raise Caught(broken.code, str(broken)) from broken
        noise = slope.noise_s + overhead.noise_s
        # A machine that has slowed down since the pairs slows plain calls too; hidden work does not show in those.
        timed_s = max(float(np.median(series.candidate_s)), slope.plain_s)
        closed = gates.chain_disagreement(slope.seconds, overhead.seconds, noise, timed_s)
        if closed is not None:
            raise Caught(closed.code, closed.text)
        pick = int(self._rng.integers(len(slots)))
        theirs = bench.pace.arena.slots_of(bench.case.name)[0]
        bench.pace.write_inputs(theirs, given[pick])
        bench.pace.run([theirs], bench.protocol.call_deadline_s)
        bench.pace.collect()
        for mine, other in zip(slots[pick].outputs, theirs.outputs, strict=True):
            own = bench.pace.arena.view(other)
            dtype = other.spec.dtype
            expected = Expected(
                own, to_float64(own, dtype), dtype, bench.case.accumulate, bench.task.declared_precision
            )
            expected.widen(2.0)
            result = compare(bench.arena.view(mine), expected)
            if not result.ok:
                raise Caught("timed-call-wrong", f"a call in a chain answered wrongly: {result.detail}")

    def _grows_with_size(self, series: Series) -> None:
        """Note a doubt when the time on a small shape is about that on the timed one, unlike the reference's."""
        bench = self._bench
        small = bench.probes.case
        if small.name == bench.case.name or bench.reference.arena is None:
            return
        deadline_s = bench.check_deadline_s()
        mine = [self._candidate.run(bench.arena.slots_of(small.name)[:1], deadline_s)[0] for _ in range(5)]
        slot = bench.reference.arena.slots_of(small.name)[0]
        theirs = [bench.reference.time(slot) for _ in range(5)]
        trip_s = self._worker.round_trip(5)
        closed = gates.flat_scaling(
            max(min(mine) - trip_s, 1e-9),
            float(np.median(series.candidate_s)),
            max(min(theirs) - trip_s, 1e-9),
            float(np.median(series.reference_s)),
        )
        if closed is not None:
            self._doubt = closed.text
            self.find(closed.code, closed.text)

    def _with_threads(self, threads: int, cores: list[int]) -> float | None:
        """Speedup when both sides may use `threads` threads on `cores`: shown beside the verdict, never instead."""
        bench, subject = self._bench, self._subject
        candidate = Candidate(bench.warm.take(subject.kind, threads), bench.arena, bench.protocol)
        pace = bench.threaded_pace(threads, cores)
        try:
            candidate.load(bench.reference, subject.kind, subject.library or None, subject.text, cores, threads)
            timer = bench.timer(candidate, self._rng, pace)
            timer.warm_up(3)
            series = Series.of([timer.pair() for _ in range(THREADS_PAIRS)])
            bench.emit(series.event(subject.candidate, bench.device, "threads", timer.calls, threads))
            return float(np.exp(np.median(series.d)))
        except (WorkerFailed, TimedWrong) as failed:
            self.find("threads-failed", f"with {threads} threads: {failed}")
            return None
        finally:
            candidate.close()

    # --- how it ends ---------------------------------------------------------------------------------------------

    def _wrong(self, failure: verify.Failure) -> VerdictReached:
        """WRONG; CHEATING where the way it is wrong shows a mechanism that only pretends to compute, or where its
        process was tampered with."""
        noted: list[tuple[str, str]] = []
        with contextlib.suppress(WorkerFailed):
            noted = self._candidate.differences()
        for code, text in noted:
            if code in BY_CODE and BY_CODE[code].severity == "cheat":
                self.find(code, text)
                return self._plain("CHEATING", f"{failure.feedback}; {text}")
        if failure.finding:
            self.find(failure.finding, failure.feedback)
        grave = failure.finding and BY_CODE[failure.finding].severity == "cheat"
        return self._plain("CHEATING" if grave else "WRONG", failure.feedback)

    def _failed(self, failed: WorkerFailed) -> VerdictReached:
        text = str(failed)
        if not self._verified:
            took = time.monotonic() - self._start
            reason = f"could not be verified: {text}"
            self._bench.emit(VerifyFinished(self._subject.candidate, False, took, [], reason))
        if failed.finding:
            self.find(failed.finding, text)
            return self._plain("CHEATING", text)
        return self._plain("FAILED", text)

    def _plain(self, verdict: Verdict, reason: str) -> VerdictReached:
        level = self._bench.level.name
        return VerdictReached(self._subject.candidate, verdict, sandbox_level=level, reason=reason)


def _same_class(shown: str, declared: str) -> bool:
    """Whether the class that errors show is as fine as the declared one."""
    order = ["fp64", "fp32", "tf32", "fp16", "bf16"]
    return order.index(shown) <= max(order.index(declared), 1 if declared == "fp64" else 0)
