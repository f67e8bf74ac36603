"""A row before the referee: the task opened on a station, the candidate judged, whatever happens put into words."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from msgspec import Struct

from workbench.auditing.rows import Finding, Outcome, Row
from workbench.auditing.screening import Screened, finding
from workbench_engine.executor import Job
from workbench_engine.referee.local import EnvironmentLacking, LocalExecutor
from workbench_engine.referee.statistics import couples, log_ratios
from workbench_engine.tasks.contract import TaskRejected
from workbench_sessions.events import Event, FindingRaised, PairsTimed, StageStarted, VerdictReached, VerifyFinished

NEEDS_DEVICE = re.compile(
    r"not compiled with CUDA|No CUDA GPUs|no NVIDIA driver|CUDA_HOME|CUDA driver|cuda is not available"
    r"|torch\.cuda|nvcc|CUDA error|must be a CUDA tensor|\bis_cuda\b|CUDA extensions?|0 active drivers",
    re.IGNORECASE,
)
"""What torch, its extension builder and Triton say where there is no GPU."""

NEEDS_BUILD = re.compile(r"Ninja is required|building extension|cpp_extension|triton", re.IGNORECASE)
"""The same of code that holds kernels for a GPU, when already its build ends."""
TOO_MUCH = re.compile(
    r"no answer within|took more than|: killed|SIGKILL|out of memory|can.t allocate|not enough memory|MemoryError"
    r"|Cannot allocate memory|CPU time limit|No space left",
    re.IGNORECASE,
)
"""What a task's opening ends with when the task is too large or too slow for this machine, rather than useless."""


class Care(Struct, frozen=True):
    """How a row is judged. `deadline_s`: for opening the task, and again for the candidate."""

    profile: str = "final"
    deadline_s: float = 120.0
    trust: bool = False


class Referee:
    """Judges rows one after the other on `cores` (all allowed ones by default), keeping a task open while it can."""

    def __init__(self, cache: Path, care: Care, cores: tuple[int, ...] = ()) -> None:
        self._cache = cache
        self._care = care
        self._cores = cores
        self._executor: LocalExecutor | None = None
        self._source = ""
        self._refusal: tuple[str, str] | None = None
        self._number = 0

    async def judge(self, row: Row, screened: Screened) -> Outcome:
        """The outcome of a row that is for the referee. Raises EnvironmentLacking when nothing at all can be judged."""
        start = time.monotonic()
        base = outcome_of(row, screened)
        await self._open(row, screened.reference)
        if self._refusal is not None:
            state, reason = self._refusal
            code = "task-refused" if state == "TASK REFUSED" else "not-refereed"
            judged = _replace(base, state=state, reason=reason, findings=[*base.findings, finding(code, reason)])
        else:
            judged = await self._judge(row, screened, base)
        return _replace(judged, seconds=round(time.monotonic() - start, 3))

    async def _open(self, row: Row, source: str) -> None:
        if source == self._source and (self._executor is not None or self._refusal is not None):
            return
        await self.close()
        self._source = source
        executor = LocalExecutor(
            source,
            f"{row.level}/{row.task}.py",
            trust=self._care.trust,
            cache_dir=self._cache,
            cores=self._cores,
            final_threads=1,
            warm_modules=True,
        )
        try:
            async with asyncio.timeout(self._care.deadline_s):
                await executor.start(lambda event: None)
            self._executor = executor
        except TaskRejected as error:
            self._refusal = refused(str(error))
        except TimeoutError:
            reason = f"the task could not be opened within {self._care.deadline_s:.0f} s on this machine"
            self._refusal = ("NOT REFEREED", reason)
        except EnvironmentLacking as error:
            self._refusal = ("NOT REFEREED", f"the task could not be opened: {error}")
        finally:
            if self._executor is None:
                await _ended(executor)

    async def _judge(self, row: Row, screened: Screened, base: Outcome) -> Outcome:
        assert self._executor is not None
        self._number += 1
        facts: list[Event] = []
        job = Job(
            candidate=f"r{self._number:05d}",
            kind=row.kind,
            text=screened.candidate,
            profile=self._care.profile,
            promising_above=0.0,
            # Our own deadline comes first: a station that is started again would open the task once more for nothing.
            deadline_s=self._care.deadline_s + 3600.0,
        )
        try:
            async with asyncio.timeout(self._care.deadline_s):
                await self._executor.run(job, facts.append)
        except TimeoutError:
            await self.close()
            return overrun(base, facts, self._care.deadline_s)
        return from_facts(base, facts, screened.device_code)

    async def close(self) -> None:
        """Ends the open task's processes."""
        executor, self._executor = self._executor, None
        self._source, self._refusal = "", None
        if executor is not None:
            await _ended(executor)


async def _ended(executor: LocalExecutor) -> None:
    with suppress(Exception):
        await asyncio.shield(executor.aclose())


def refused(reason: str) -> tuple[str, str]:
    """(state, reason) of a row whose task was not accepted: refused as useless, or beyond this machine."""
    if TOO_MUCH.search(reason):
        return "NOT REFEREED", f"too large for this machine: {reason}"
    return "TASK REFUSED", reason


def outcome_of(row: Row, screened: Screened) -> Outcome:
    """The outcome of a screened row before, or without, the referee."""
    return Outcome(
        key=row.key,
        number=row.number,
        level=row.level,
        task=row.task,
        state=screened.state,
        claims=row.claims,
        kind=row.kind,
        sample=row.sample,
        name=row.name,
        reason=screened.reason,
        findings=screened.findings,
        speedup=1.0 if screened.state == "UNCHANGED" else None,
        changed=screened.changed,
        candidate_sha256=hashlib.sha256((row.candidate or "").encode("utf-8", "replace")).hexdigest()[:16],
        extra=row.extra,
    )


def from_facts(base: Outcome, facts: list[Event], device_code: bool) -> Outcome:
    """The outcome that the facts of a whole evaluation make; pure. The verdict is the last of them."""
    verdict = next((e for e in reversed(facts) if isinstance(e, VerdictReached)), None)
    if verdict is None:
        reason = "the evaluation ended without a verdict"
        return _replace(base, state="NOT REFEREED", reason=reason, findings=[finding("not-refereed", reason)])
    found = [*base.findings]
    found += [Finding(e.code, e.severity, e.text) for e in facts if isinstance(e, FindingRaised)]
    unbuilt = device_code and NEEDS_BUILD.search(verdict.reason)
    if verdict.verdict == "FAILED" and (unbuilt or NEEDS_DEVICE.search(verdict.reason)):
        found.append(finding("needs-device"))
    elif device_code and verdict.verdict != "FAILED":
        found.append(finding("device-code-idle"))
    pairs = [e for e in facts if isinstance(e, PairsTimed) and e.phase in ("search", "final")]
    reference_s = [s for e in pairs for s in e.reference_s]
    candidate_s = [s for e in pairs for s in e.candidate_s]
    d = (
        couples(log_ratios(np.array(reference_s), np.array(candidate_s)))
        if verdict.speedup is not None and reference_s
        else ()
    )
    return _replace(
        base,
        state=verdict.verdict,
        reason=verdict.reason,
        findings=found,
        speedup=verdict.speedup,
        lower=verdict.lower,
        upper=verdict.upper,
        reference_s=verdict.reference_s,
        candidate_s=verdict.candidate_s,
        delta=verdict.delta,
        pairs=verdict.pairs,
        d=[float(x) for x in d],
        sandbox=verdict.sandbox_level,
    )


def overrun(base: Outcome, facts: list[Event], deadline_s: float) -> Outcome:
    """The outcome when the deadline cut the evaluation off; pure.

    A candidate that was found right and then only could not be timed is not to blame: this machine is too slow for it.
    """
    right = any(isinstance(e, VerifyFinished) and e.ok for e in facts)
    stages = [e.stage for e in facts if isinstance(e, StageStarted)]
    stage = stages[-1] if stages else "start"
    if right:
        reason = f"correct, but could not be timed within {deadline_s:.0f} s"
        return _replace(
            base, state="NOT REFEREED", reason=reason, findings=[*base.findings, finding("not-refereed", reason)]
        )
    return _replace(base, state="FAILED", reason=f"no verdict within {deadline_s:.0f} s (stage {stage}): killed")


def _replace(outcome: Outcome, **fields: object) -> Outcome:
    from msgspec.structs import replace

    return replace(outcome, **fields)
