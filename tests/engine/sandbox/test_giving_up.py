"""A job that is given up ends its station and its workers; the next job gets an answer of its own."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from workbench_engine.backends.cpu import CpuBuilder
from workbench_engine.referee.local import Station, StationDied
from workbench_engine.referee.station import Judge, Open
from workbench_engine.sandbox.level import probe
from workbench_engine.tasks.catalogue import bundled_path
from workbench_sessions.events import Event, StageStarted

HONEST = Path(__file__).parents[2] / "controls" / "containment" / "prints_a_little.cpp"
HANGS = 'extern "C" void kernel_run(const void* const*, void* const*, const long long*) { for (;;) asm volatile(""); }'
SETTLED_S = 10.0


def descendants(pid: int) -> set[int]:
    """Of a process, in this pid namespace (those inside a cage have a number here too)."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found |= {child} | descendants(child)
    return found


def living(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


async def gone(pids: set[int]) -> bool:
    until = time.monotonic() + SETTLED_S
    while living(pids) and time.monotonic() < until:
        await asyncio.sleep(0.02)
    return not living(pids)


async def scene(folder: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    builder = CpuBuilder(probe(), folder)
    hanging, honest = await builder.build(HANGS, cores), await builder.build(HONEST.read_text(), cores)
    path = bundled_path("softmax_rows")
    station = Station("cpu", cores[-1])
    request = Open("cpu", path.read_text(), str(path), "", cores[-1], cores[:-1] or cores, floor=False)
    verifying = asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, StageStarted):
            verifying.set()

    try:
        await station.open(request, hear)
        process = station._process
        assert process is not None
        job = asyncio.create_task(station.judge(Judge("hangs", "kernel", "", hanging.path), hear, 600.0))
        await verifying.wait()
        workers = descendants(process.pid)
        assert workers
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        assert not station.running
        assert await gone({process.pid, *workers})
        with pytest.raises(StationDied, match="not running"):
            await station.judge(Judge("honest", "kernel", "", honest.path), hear, 600.0)
        await station.revive(hear)
        verdict = await station.judge(Judge("honest", "kernel", "", honest.path), hear, 600.0)
        assert verdict.candidate == "honest" and verdict.verdict in ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")
        process = station._process
        assert process is not None
        workers = descendants(process.pid)
        await station.kill()
        assert await gone({process.pid, *workers})
    finally:
        await station.kill()


def test_a_job_given_up_ends_its_station_and_workers(tmp_path: Path) -> None:
    asyncio.run(scene(tmp_path))
