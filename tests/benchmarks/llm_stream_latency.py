"""How fast a key is answered while many models write at once: reported, never asserted.

    python -m tests.benchmarks.llm_stream_latency [--streams 64] [--chunks 30] [--seconds 30] [--size 160x50]

A session with made-up prompts is written to a temporary folder. Another process then keeps so many answers open at
once, each growing by so many chunks a second of a few tokens, told through the engine's own scribe and recorder (which
make of them what an engine writes) as long as keys are pressed here. An answer that ends becomes a candidate with a
verdict, and the next prompt goes out. Printed are, per screen, the milliseconds from the key to the end of the repaint
it caused (p50, p95, max), the cost of a tick, and the lag of the event loop. `cpu` is the screen thread's own time,
which other work on the machine does not stretch. Headless: the cost of writing to a terminal is not in it.

Wanted: p95 of all keys at most 50 ms with 64 streams.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Mapping
from multiprocessing.synchronize import Event as Flag
from pathlib import Path

from tests.benchmarks.screens_latency import lag, quantiles, repainted

from workbench_engine.conducting.recorder import Recorder
from workbench_engine.llm.contract import Choice, Completion, Message
from workbench_engine.policies.llm.answers import Answer, read_answer
from workbench_engine.policies.llm.planning import Plan
from workbench_engine.policies.llm.scribe import Scribe, sha256_of
from workbench_screens.app import make_app
from workbench_sessions.events import CandidateProposed, Event, Origin, ResponseStreamed, VerdictReached
from workbench_sessions.feed import SessionCommandPort, SessionFeed
from workbench_sessions.log import SessionWriter
from workbench_sessions.synthetic_prompts import write_asked

CHUNK_CHARACTERS = 12
"""About three tokens, as servers send them."""

ANSWER_S = (6.0, 20.0)
"""How long an answer takes."""

KEYS = {
    "transcript": ["down", "down", "enter", "tab", "j", "j", "pagedown", "ctrl+end", "ctrl+home", "escape", "up"],
    "transcript, following the newest": ["escape", "escape", "enter", "ctrl+end", "j", "k", "escape"],
    "population": ["down", "down", "j", "pagedown", "up", "o", "O", "pageup"],
    "rewards": ["left", "left", "right", "full_stop", "comma", "v"],
}


class Writers:
    """So many models at work on one session."""

    def __init__(self, writer: SessionWriter, streams: int, chunks_per_s: float) -> None:
        self.streams, self.chunks_per_s = streams, chunks_per_s
        self.recorder = Recorder(writer)
        self.scribe = Scribe(self.say, writer.projection.prompts)
        self.random = random.Random(0)
        self.numbers = itertools.count(1)
        self.chunks = 0

    def say(self, event: Event, texts: Mapping[str, str]) -> None:
        for text in texts.values():
            self.recorder.put_source(text)
        self.recorder.emit(event)

    async def run(self, stop: Flag) -> None:
        recording = asyncio.create_task(self.recorder.run())
        models = [asyncio.create_task(self.model(i)) for i in range(self.streams)]
        while not stop.is_set():
            await asyncio.sleep(0.1)
        for task in (recording, *models):
            task.cancel()
        self.recorder.flush()

    async def model(self, number: int) -> None:
        # Not all in step.
        await asyncio.sleep(self.random.uniform(0.0, 2.0))
        while True:
            await self.answer(number)

    async def answer(self, number: int) -> None:
        count = int(self.random.uniform(*ANSWER_S) * self.chunks_per_s)
        code = "".join(f"    y[{i}] = x[{i}] * 2.0f;\n" for i in range(count * CHUNK_CHARACTERS // 24))
        text = f"## Performance analysis\n\nB wins.\n\n## Algorithm design\n\nUnroll.\n\n## Code\n\n```cpp\n{code}```\n"
        asked = (Message("system", "Make it faster."), Message("user", "# Task\n\n" + code[: len(code) // 2]))
        hearing = self.scribe.sent(
            asked, Plan("full"), model=f"model-{number % 4}", endpoint=f"at-{number % 4}", group=0, n=1
        )
        begun_s = time.perf_counter()
        for i in range(count):
            due_s = begun_s + (i + self.random.uniform(0.0, 0.9)) / self.chunks_per_s
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            hearing.chunk(text[i * CHUNK_CHARACTERS : (i + 1) * CHUNK_CHARACTERS])
            self.chunks += 1
        choice = Choice(text)
        took_s = time.perf_counter() - begun_s
        done = Completion((choice,), tokens_in=900, tokens_out=len(text) // 4, cost=0.001, latency_s=took_s)
        answers: list[Answer] = [read_answer(choice, "full", "kernel")]
        hearing.answered(done, answers)
        self.judged(hearing.name, code)

    def judged(self, prompt: str, code: str) -> None:
        name = f"s{next(self.numbers):05d}"
        sha = sha256_of(code)
        origin = Origin(policy="llm", model="m", patch="full", prompt=prompt, answer=0)
        proposed = CandidateProposed(
            candidate=name, kind="kernel", source_sha256=sha, origin=origin, island=0, generation=1
        )
        self.say(proposed, {sha: code})
        speed = self.random.uniform(0.8, 1.4)
        self.say(VerdictReached(candidate=name, verdict="FASTER" if speed > 1 else "SLOWER", speedup=speed), {})


def write(path: Path, streams: int, chunks_per_s: float, stop: Flag) -> None:
    with SessionWriter.open(path) as writer:
        writers = Writers(writer, streams, chunks_per_s)
        begun = time.perf_counter()
        asyncio.run(writers.run(stop))
        span = time.perf_counter() - begun
    print(f"writer: {writers.chunks / span:.0f} chunks a second came of {streams} models", flush=True)


async def measure(path: Path, given: argparse.Namespace, size: tuple[int, int]) -> None:
    feed = SessionFeed(path, follow=True)
    print(f"{len(feed.projection.requests)} prompts, {len(feed.projection.candidates)} candidates at the start")
    app = make_app(feed, SessionCommandPort(path))
    ticks: list[float] = []
    plain_tick = app.tick

    def timed_tick() -> None:
        start = time.perf_counter()
        plain_tick()
        ticks.append((time.perf_counter() - start) * 1e3)

    app.tick = timed_tick  # type: ignore[method-assign]
    spawning = multiprocessing.get_context("spawn")
    stop = spawning.Event()
    before = feed.head_seq
    every: list[float] = []
    every_cpu: list[float] = []
    lags: list[float] = []
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        process = spawning.Process(target=write, args=(path, given.streams, given.chunks, stop))
        process.start()
        while feed.head_seq == before:
            await pilot.pause(0.05)
        # Until all of them write.
        await pilot.pause(4.0)
        first, streaming = feed.head_seq, time.perf_counter()
        quiet = asyncio.Event()
        watcher = asyncio.create_task(lag(lags, quiet))
        try:
            for name, keys in KEYS.items():
                await app.action_show(name.split(",")[0])
                await pilot.pause(0.3)
                ticks.clear()
                took: list[float] = []
                cpus: list[float] = []
                until = time.perf_counter() + given.seconds / len(KEYS)
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
                states = [row.state for row in feed.projection.requests.values()]
                print(f"{name}: {states.count('streaming')} writing")
                print(
                    f"    key  {quantiles(took)}\n    cpu  {quantiles(cpus)}\n    tick {quantiles(ticks)}", flush=True
                )
        finally:
            span = time.perf_counter() - streaming
            last = feed.head_seq
            quiet.set()
            await watcher
            stop.set()
            process.join()
    pieces = sum(isinstance(one.event, ResponseStreamed) for one in read(path, first, last))
    print(f"all keys {quantiles(every)}\n    cpu  {quantiles(every_cpu)}\nloop lag {quantiles(lags)}")
    print(f"{(last - first) / span:.0f} events a second, {pieces / span:.0f} of them pieces of answers")
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def read(path: Path, after: int, upto: int) -> list:  # type: ignore[type-arg]
    feed = SessionFeed(path, follow=False)
    try:
        return feed._reader.events(after, upto - after)
    finally:
        feed.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--chunks", type=float, default=30.0, help="chunks a second of each")
    parser.add_argument("--candidates", type=int, default=500, help="made-up ones in the session before it begins")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--size", default="160x50")
    given = parser.parse_args()
    width, height = (int(part) for part in given.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        path = write_asked(Path(folder) / "prompts.wb", given.candidates)
        asyncio.run(measure(path, given, (width, height)))


if __name__ == "__main__":
    main()
