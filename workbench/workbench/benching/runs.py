"""One run from request to end, without a screen."""

from __future__ import annotations

import os
import queue
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from msgspec import Struct, structs

from workbench.benching.claiming import Claim, claim_of
from workbench.engine_process import create_session, start_engine
from workbench.errors import CommandFailed, UsageProblem
from workbench_engine.settings import RunSettings
from workbench_sessions.projection import Projection
from workbench_sessions.reader import SessionReader


class Point(Struct, frozen=True):
    """After so many evaluations the best refereed FASTER speedup was this."""

    evaluations: int
    speedup: float


class Finished(Struct, frozen=True):
    """What a run came to. Speedups are ratios, times seconds; `first_faster_s` counts from the session's opening."""

    task: str
    policy: str
    seed: int
    outcome: str
    evaluations: int
    seconds: float
    verdicts: dict[str, int]
    reference_s: float | None
    best: float | None
    lower: float | None
    upper: float | None
    confirmed: bool
    first_faster_s: float | None
    delta: float | None
    sandbox: str
    host: str
    curve: list[Point]
    claim: Claim | None = None


def run_once(settings: RunSettings, keep: Path | None = None) -> Finished:
    """Runs a request in an engine process to its end. `keep`: folder for the session file, else it is thrown away.

    Raises CommandFailed when the run failed, SessionError.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{Path(settings.task).stem}-{settings.policy}-{settings.seed}.wb"
        create_session(path, settings)
        engine = start_engine(path, Path(scratch) / "engine.log")
        try:
            engine.wait()
        except BaseException:
            engine.stop()
            raise
        with SessionReader(path) as reader:
            projection = reader.project_at(reader.head_seq())
            best = projection.candidates.get(projection.best or "")
            pairs = reader.pair_series(best.id) if best is not None else []
        if not projection.header.closed or projection.header.outcome == "failed":
            raise CommandFailed(projection.header.phase_reason or engine.last_words() or "the run failed")
        done = summary(projection, settings)
        counts = done.verdicts
        timed = sum(counts.get(name, 0) for name in ("FASTER", "SAME", "SLOWER", "AMBIGUOUS"))
        return structs.replace(done, claim=claim_of(pairs, done.delta or 0.0, timed))


def run_many(
    requests: list[RunSettings], jobs: int, keep: Path | None = None
) -> Iterator[tuple[RunSettings, Finished | CommandFailed]]:
    """Runs all requests, `jobs` at once, each on two cores that no other uses; yields each as it ends. `keep`: as of
    `run_once`.

    Raises UsageProblem when there are not two cores for each job.
    """
    if jobs == 1:
        for request in requests:
            try:
                yield request, run_once(request, keep)
            except CommandFailed as error:
                yield request, error
        return
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 * jobs:
        raise UsageProblem(f"--jobs {jobs}: needs {2 * jobs} cores, this process may use {len(cores)}")
    pairs: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    for i in range(jobs):
        pairs.put((cores[2 * i], cores[2 * i + 1]))

    def one(request: RunSettings) -> Finished | CommandFailed:
        pair = pairs.get()
        try:
            return run_once(structs.replace(request, cores=pair), keep)
        except CommandFailed as error:
            return error
        finally:
            pairs.put(pair)

    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(one, request): request for request in requests}
        for done in as_completed(running):
            yield running[done], done.result()


def summary(p: Projection, settings: RunSettings) -> Finished:
    """The essentials of an ended session."""
    names = ("faster", "same", "slower", "ambiguous", "wrong", "failed", "cheating")
    best = p.candidates.get(p.best) if p.best else None
    timed = next((r.reference_s for r in p.candidates.values() if r.reference_s is not None), None)
    floors = [device.delta for device in p.devices.values() if device.delta is not None]
    return Finished(
        task=p.header.task.name if p.header.task else settings.task,
        policy=settings.policy,
        seed=settings.seed,
        outcome=p.header.outcome,
        evaluations=p.evaluations,
        seconds=p.spent_seconds,
        verdicts={name.upper(): getattr(p.counts, name) for name in names},
        reference_s=best.reference_s if best is not None else timed,
        best=best.speedup if best is not None else None,
        lower=best.lower if best is not None else None,
        upper=best.upper if best is not None else None,
        confirmed=best.confirmed if best is not None else False,
        first_faster_s=p.best_curve[0].at_s - p.header.opened_at_s if p.best_curve else None,
        delta=max(floors, default=None),
        sandbox=p.header.sandbox_level,
        host=p.header.host.cpu if p.header.host else "",
        curve=[Point(point.evaluations, point.speedup) for point in p.best_curve],
    )
