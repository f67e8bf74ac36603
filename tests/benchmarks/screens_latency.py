"""How fast a key is answered while a large session streams in: reported, never asserted.

    python tests/benchmarks/screens_latency.py [--candidates 10000] [--rate 200] [--seconds 20]

A session of made-up candidates is written to a temporary folder; another process then appends events at the given rate
through the session's own writer, as an engine does, while keys are pressed on each screen. Printed are, per screen, the
milliseconds from the key to the end of the repaint it caused (p50, p95, max), the cost of a tick, and the lag of the
event loop. `cpu` is the screen thread's own time, which other work on the machine does not stretch. Headless: the cost
of writing to a terminal is not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import tempfile
import time
from multiprocessing.synchronize import Event as Flag
from pathlib import Path

import numpy as np

from workbench_screens.app import WorkbenchApp, make_app
from workbench_sessions.events import CandidateProposed, Event, StageStarted, VerdictReached
from workbench_sessions.feed import SessionCommandPort, SessionFeed
from workbench_sessions.log import SessionWriter
from workbench_sessions.synthetic import events, write_session

KEYS = {
    "population": ["down", "down", "j", "pagedown", "up", "o", "O", "pageup"],
    "rewards": ["left", "left", "right", "full_stop", "comma", "v"],
    "devices": ["z", "Z", "c", "c"],
    "diff": ["down", "n", "N", "t", "t", "pagedown"],
    "lineage": ["down", "pagedown", "up"],
}


def renamed(event: Event, run: int) -> Event:
    """Streamed candidates must not be those of the file again."""
    from msgspec.structs import replace

    if isinstance(event, CandidateProposed):
        return replace(event, candidate=f"s{run}{event.candidate}", parents=[], exemplars=[])
    if isinstance(event, (StageStarted, VerdictReached)):
        return replace(event, candidate=f"s{run}{event.candidate}")
    return event


def stream(path: Path, rate: float, stop: Flag) -> None:
    """Appends in batches of 20 a second, as an engine groups them."""
    batch = max(1, int(rate / 20))
    source = (renamed(event, run) for run in itertools.count() for event in events(400, run))
    with SessionWriter.open(path) as writer:
        while not stop.is_set():
            begun = time.perf_counter()
            writer.append(list(itertools.islice(source, batch)))
            stop.wait(max(0.0, 1 / 20 - (time.perf_counter() - begun)))


def quantiles(values: list[float]) -> str:
    if not values:
        return "n/a"
    p50, p95 = np.percentile(values, [50, 95])
    return f"p50 {p50:6.1f}  p95 {p95:6.1f}  max {max(values):6.1f} ms  (n {len(values)})"


async def repainted(app: WorkbenchApp) -> None:
    """Until the message of the key is handled and the compositor has painted."""
    done = asyncio.Event()
    app.screen.call_after_refresh(done.set)
    await done.wait()


async def lag(out: list[float], stop: asyncio.Event) -> None:
    while not stop.is_set():
        begun = time.perf_counter()
        await asyncio.sleep(0.01)
        out.append((time.perf_counter() - begun - 0.01) * 1e3)


async def measure(path: Path, rate: float, seconds: float, size: tuple[int, int]) -> None:
    begun = time.perf_counter()
    feed = SessionFeed(path, follow=True)
    print(f"opened in {(time.perf_counter() - begun) * 1e3:.0f} ms: {len(feed.projection.candidates)} candidates")
    app = make_app(feed, SessionCommandPort(path))
    ticks: list[float] = []
    tick_cpu: list[float] = []
    plain_tick = app.tick

    def timed_tick() -> None:
        start, cpu = time.perf_counter(), time.thread_time()
        plain_tick()
        ticks.append((time.perf_counter() - start) * 1e3)
        tick_cpu.append((time.thread_time() - cpu) * 1e3)

    app.tick = timed_tick  # type: ignore[method-assign]
    spawning = multiprocessing.get_context("spawn")
    stop = spawning.Event()
    before = feed.head_seq
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        writer = spawning.Process(target=stream, args=(path, rate, stop))
        writer.start()
        while feed.head_seq == before:
            await pilot.pause(0.05)
        streaming = time.perf_counter()
        every: list[float] = []
        every_cpu: list[float] = []
        lags: list[float] = []
        quiet = asyncio.Event()
        watcher = asyncio.create_task(lag(lags, quiet))
        try:
            for name, keys in KEYS.items():
                await app.action_show(name)
                await pilot.pause(0.3)
                ticks.clear()
                tick_cpu.clear()
                took: list[float] = []
                cpus: list[float] = []
                until = time.perf_counter() + seconds / len(KEYS)
                for key in itertools.cycle(keys):
                    if time.perf_counter() > until:
                        break
                    start, cpu = time.perf_counter(), time.thread_time()
                    app.simulate_key(key)
                    await repainted(app)
                    took.append((time.perf_counter() - start) * 1e3)
                    cpus.append((time.thread_time() - cpu) * 1e3)
                    await asyncio.sleep(0.03)
                every += took
                every_cpu += cpus
                print(f"{name:<11} key  {quantiles(took)}\n{'':<11} cpu  {quantiles(cpus)}")
                print(f"{'':<11} tick {quantiles(ticks)}\n{'':<11} cpu  {quantiles(tick_cpu)}", flush=True)
        finally:
            span = time.perf_counter() - streaming
            quiet.set()
            await watcher
            stop.set()
            writer.join()
    print(f"{'all':<11} key  {quantiles(every)}\n{'':<11} cpu  {quantiles(every_cpu)}")
    print(f"{'loop lag':<11}      {quantiles(lags)}")
    print(f"streamed {feed.head_seq - before} events at {(feed.head_seq - before) / span:.0f} a second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=200.0, help="events a second")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--size", default="160x50")
    given = parser.parse_args()
    width, height = (int(part) for part in given.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        path = write_session(Path(folder) / "large.wb", given.candidates)
        asyncio.run(measure(path, given.rate, given.seconds, (width, height)))


if __name__ == "__main__":
    main()
