"""The engine process with a stand-in for its executor: `python run_workbench.py SESSION.wb`.

Everything is as in `python -m workbench_engine` but for the evaluation, which is a sleep of the same length as the
other engines' and tells the facts that a real one would, so that the session log has as much to store. Nothing here
measures a kernel.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from evaluate import score, tally  # type: ignore[import-not-found]

from workbench_engine.__main__ import main
from workbench_engine.executor import Job, JobResult
from workbench_engine.settings import RunSettings
from workbench_engine.tasks.contract import ShapeCase, Task
from workbench_sessions import events as ev
from workbench_sessions.events import Event

PAIRS = 12


class SleepingExecutor:
    """A stand-in evaluator: takes its time and finds what the candidate's number says."""

    sandbox_level = "stand-in"

    def __init__(self, source: str, seconds: float) -> None:
        self._source = source
        self._seconds = seconds

    async def start(self, emit: Callable[[Event], None]) -> Task:
        emit(ev.DeviceSeen(device="cpu0", kind="cpu", name="stand-in", cores=1))
        emit(ev.FloorMeasured(device="cpu0", delta=0.02, medians=[0.0]))
        case = ShapeCase("cpu", {"rows": 4}, ())
        return Task("standin", "A stand-in", self._source, "standin.py", "float32", {"cpu": case})

    async def run(self, job: Job, emit: Callable[[Event], None]) -> JobResult:
        number = max((int(n) for n in re.findall(r"variant = (\d+)", job.text)), default=0)
        third = self._seconds / 3.0
        emit(ev.StageStarted(candidate=job.candidate, stage="build", device="cpu0"))
        await asyncio.sleep(third)
        emit(ev.BuildFinished(candidate=job.candidate, ok=True, seconds=third))
        emit(ev.StageStarted(candidate=job.candidate, stage="verify", device="cpu0"))
        await asyncio.sleep(third)
        emit(ev.VerifyFinished(candidate=job.candidate, ok=True, seconds=third, checks=[]))
        emit(ev.StageStarted(candidate=job.candidate, stage="time", device="cpu0"))
        await asyncio.sleep(third)
        speedup = score(number)
        pairs = [1e-4 * speedup] * PAIRS, [1e-4] * PAIRS
        phase = "final" if job.profile == "final" else "search"
        emit(ev.PairsTimed(job.candidate, "cpu0", phase, *pairs))  # type: ignore[arg-type]
        verdict = "FASTER" if speedup > 1.05 else "SAME"
        emit(
            ev.VerdictReached(
                candidate=job.candidate,
                verdict=verdict,  # type: ignore[arg-type]
                speedup=speedup,
                pairs=PAIRS,
                sandbox_level="stand-in",
            )
        )
        if job.profile == "search":
            tally(number)
        return JobResult(job.candidate, verdict, speedup, "")

    async def aclose(self) -> None:
        pass


def executor(settings: RunSettings, path: Path) -> SleepingExecutor:
    return SleepingExecutor(settings.source, float(os.environ["THROUGHPUT_EVALUATION_S"]))


if __name__ == "__main__":
    sys.exit(main(make_executor=executor))
