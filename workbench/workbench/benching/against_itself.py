"""A/A: the reference as its own candidate, judged again and again, beside the same code timed one after the other."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from msgspec import Struct

from workbench.judging import TaskText
from workbench_engine.referee.bench import Bench
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.claims import wilson
from workbench_engine.referee.judge import verdict_of
from workbench_engine.referee.sequential import time_side, unpaired
from workbench_engine.sandbox.level import SandboxLevel
from workbench_sessions.events import Event, Verdict

FEWEST_BLOCKS = 8
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"
"""Ends by itself when this process was killed and could not end it."""


class Measured(Struct, frozen=True):
    """One method on one candidate: ln ratio with its 95 % interval, and what is said of it above the A/A floor."""

    verdict: str
    d: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    reason: str = ""


class Run(Struct, frozen=True):
    """One candidate: as the referee judged it, and timed one side after the other."""

    paired: Measured
    sequential: Measured | None = None


class Share(Struct, frozen=True):
    """`k` of `n` with the 95 % Wilson interval of the share."""

    k: int
    n: int
    low: float
    high: float


class Method(Struct, frozen=True):
    """A method over all runs. `covered`: intervals that hold ln 1 = 0; `false_faster`: called FASTER;
    `above`: intervals wholly above 1, as if there were no floor; `width`: median width of the interval in ln."""

    name: str
    covered: Share
    false_faster: Share
    above: Share
    verdicts: dict[str, int]
    largest: float
    width: float


def twin(reference: str) -> str:
    """A candidate that is the reference: its file, with `ModelNew` as another name of `Model`."""
    return f"{reference.rstrip()}\n\n\nModelNew = Model\n"


def share(k: int, n: int) -> Share:
    return Share(k, n, *wilson(k, n))


def method(name: str, measured: Sequence[Measured]) -> Method:
    """Folds the runs of one method; those that were never timed count only as verdicts."""
    timed = [(m.d, m.low, m.high) for m in measured if m.d is not None and m.low is not None and m.high is not None]
    verdicts: dict[str, int] = {}
    for one in measured:
        verdicts[one.verdict] = verdicts.get(one.verdict, 0) + 1
    return Method(
        name=name,
        covered=share(sum(low <= 0.0 <= high for _, low, high in timed), len(timed)),
        false_faster=share(verdicts.get("FASTER", 0), len(measured)),
        above=share(sum(low > 0.0 for _, low, _ in timed), len(timed)),
        verdicts=dict(sorted(verdicts.items(), key=lambda item: -item[1])),
        largest=max((abs(d) for d, _, _ in timed), default=0.0),
        width=statistics.median([high - low for _, low, high in timed]) if timed else 0.0,
    )


COLUMNS = ("method", "interval holds 1", "false FASTER", "interval above 1", "median width", "largest |ln|", "verdicts")


def cells(one: Method) -> list[str]:
    """A row as text."""

    def shown(s: Share) -> str:
        if not s.n:
            return "—"
        return f"{s.k / s.n:.1%} [{s.low:.1%} {s.high:.1%}]"

    said = " ".join(f"{count} {name}" for name, count in one.verdicts.items())
    return [
        one.name,
        shown(one.covered),
        shown(one.false_faster),
        shown(one.above),
        f"{one.width:.2%}",
        f"{one.largest:.4f}",
        said,
    ]


@contextmanager
def load(processes: int, cores: Sequence[int]) -> Iterator[None]:
    """`processes` that do nothing but keep `cores` busy, for as long as the block lasts."""
    busy = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", BUSY, str(os.getpid())], stdin=subprocess.DEVNULL, start_new_session=True
        )
        for _ in range(processes)
    ]
    try:
        for one in busy:
            os.sched_setaffinity(one.pid, set(cores))
        yield
    finally:
        for one in busy:
            one.kill()
        for one in busy:
            one.wait()


class Against:
    """One task opened on this process, which becomes the station: it must run nothing else meanwhile.

    Raises TaskRejected when the task cannot be used.
    """

    def __init__(self, task: TaskText, level: SandboxLevel, cores: Sequence[int], profile: str) -> None:
        """`cores`: the last is timed on. `profile`: "search" or "final"."""
        self._affinity = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {cores[-1]})
        self._core, others = cores[-1], list(cores[:-1] or cores)
        self._text = twin(task.source)
        self._profile = profile
        self._rng = np.random.default_rng()
        self._bench = Bench(
            level=level,
            device=f"cpu{self._core}",
            source=task.source,
            path=str(task.path),
            case="",
            core=self._core,
            other_cores=others,
            warm_modules=True,
            emit=_unheard,
        )
        self._bench.measure_floor()

    @property
    def delta(self) -> float:
        """The A/A floor, a share."""
        return self._bench.delta

    def run(self, number: int, contrast: bool) -> Run:
        """One verdict on a fresh process with the reference's code; with `contrast` another timed sequentially."""
        reached = self._bench.judge(
            candidate=f"aa{number:04d}",
            kind="module",
            text=self._text,
            library="",
            profile=self._profile,
            promising_above=0.0,
            threads=0,
            all_cores=[],
        )
        paired = Measured(reached.verdict, pairs=reached.pairs, reason=reached.reason)
        if reached.speedup is not None and reached.lower is not None and reached.upper is not None:
            d, low, high = (math.log(x) for x in (reached.speedup, reached.lower, reached.upper))
            paired = Measured(reached.verdict, d, low, high, reached.pairs, reached.reason)
        if not contrast:
            return Run(paired)
        return Run(paired, self._sequential(max(FEWEST_BLOCKS, reached.pairs)))

    def _sequential(self, blocks: int) -> Measured:
        bench = self._bench
        candidate = Candidate(bench.warm.take("module"), bench.arena, bench.protocol)
        try:
            candidate.load(bench.reference, "module", None, self._text, [self._core], threads=1)
            deadline_s = bench.protocol.call_deadline_s
            sides = [
                time_side(side, bench.case, bench.banks, bench.calls, blocks, deadline_s)
                for side in (bench.pace, candidate)
            ]
        finally:
            candidate.close()
            bench.warm.refill()
        found = unpaired(sides[0], sides[1], self._rng)
        verdict: Verdict = verdict_of(found, bench.delta)
        return Measured(verdict, found.d, found.low, found.high, found.n)

    def close(self) -> None:
        self._bench.close()
        os.sched_setaffinity(0, self._affinity)


def _unheard(event: Event) -> None:
    """Facts of a bench are not kept."""


def measure(against: Against, runs: int, contrast: bool, say: Callable[[str], None]) -> list[Run]:
    """All runs, one after the other."""
    done = []
    for number in range(1, runs + 1):
        done.append(against.run(number, contrast))
        paired, other = done[-1].paired, done[-1].sequential
        text = f"{number}/{runs} {paired.verdict} {_ratio(paired)} {paired.reason}".rstrip()
        say(text if other is None else f"{text}; one after the other {other.verdict} {_ratio(other)}")
    return done


def _ratio(one: Measured) -> str:
    return "—" if one.d is None else f"{math.exp(one.d):.4f}"
