"""How large sessions open, seek and grow: prints numbers, judges none.

    python tests/benchmarks/sessions_scale.py [--candidates 10000] [--events 200000] [--seeks 200] [--keep FILE]

The session is `synthetic.timeline`, filled up with telemetry to the wanted number of events. Open = a new reader and a
live feed at the head, in a process that has the modules loaded. Seek = `SessionFeed.seek_seq` to random instants, once
with a cold block cache each time and once in one feed (what a person scrubbing does).
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from workbench_sessions import events as ev
from workbench_sessions import synthetic
from workbench_sessions.events import Event
from workbench_sessions.feed import SessionFeed
from workbench_sessions.log import SessionReader, SessionWriter
from workbench_sessions.store import list_sessions

BATCH = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--seeks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=None, help="write the session here and keep it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "scale.wb"
        numbers = write(path, args.candidates, args.events, args.seed) | read(path, args.seeks, args.seed)
        numbers |= follow(path)
    print(json.dumps(numbers, indent=2))


def write(path: Path, candidates: int, total: int, seed: int) -> dict[str, float]:
    """Appends the session, in batches of `BATCH`; sources go in with their candidates."""
    pending: list[Event] = []
    written, append_s, slowest_s = 0, 0.0, 0.0
    with SessionWriter.create(path, "{}") as writer:

        def flush() -> None:
            nonlocal written, append_s, slowest_s
            begin = time.perf_counter()
            writer.append(pending)
            took = time.perf_counter() - begin
            append_s, slowest_s, written = append_s + took, max(slowest_s, took), written + len(pending)
            pending.clear()

        beats = synthetic.timeline(candidates, seed)
        filler = (ev.TelemetrySampled(device=f"cpu{i % 2}", utilisation=0.5, load=1.0) for i in itertools.count())
        told = sum(1 for _ in synthetic.timeline(candidates, seed))
        every = max(1, told // max(1, total - told)) if told < total else 0
        for number, beat in enumerate(beats):
            for text in beat.sources:
                writer.put_source(text)
            pending.append(beat.event)
            if every and number % every == 0 and written + len(pending) < total:
                pending.append(next(filler))
            if len(pending) >= BATCH:
                flush()
        while written + len(pending) < total:
            pending.append(next(filler))
            if len(pending) >= BATCH:
                flush()
        flush()
    return {
        "candidates": candidates,
        "events": written,
        "append_events_per_s": round(written / append_s),
        "append_slowest_batch_ms": round(1e3 * slowest_s, 1),
        "file_mb": round(path.stat().st_size / 1e6, 1),
    } | sizes(path)


def sizes(path: Path) -> dict[str, float]:
    """Bytes of the bodies by table, in MB."""
    reader = SessionReader(path)
    query = "SELECT COALESCE(SUM(LENGTH({})), 0) FROM {}"
    columns = {"events": "body", "sources": "text", "checkpoints": "body", "blocks": "body"}
    try:
        found = {t: reader._connection.execute(query.format(c, t)).fetchone()[0] for t, c in columns.items()}
    finally:
        reader.close()
    return {f"{table}_mb": round(size / 1e6, 1) for table, size in found.items()}


def read(path: Path, seeks: int, seed: int) -> dict[str, float]:
    numbers: dict[str, float] = {}
    numbers["open_ms"] = round(statistics.median(timed(lambda: SessionFeed(path, follow=True).close(), 5)), 1)
    numbers["list_ms"] = round(statistics.median(timed(lambda: list_sessions(path.parent), 5)), 1)
    chance = random.Random(seed)
    feed = SessionFeed(path, follow=True)
    head = feed.head_seq
    warm = timed(lambda: feed.seek_seq(chance.randint(1, head)), seeks)
    step_back = timed(lambda: feed.step(-1), 20)
    feed.close()

    def cold_seek() -> None:
        with SessionReader(path) as reader:
            reader.project_at(chance.randint(1, head))

    numbers |= spread("seek", warm) | spread("cold_seek", timed(cold_seek, max(10, seeks // 4)))
    return numbers | spread("step_back", step_back)


def follow(path: Path) -> dict[str, float]:
    """A live feed at the end of the session while an engine appends 200 events/s: cost of one 10 Hz poll, each side."""
    feed = SessionFeed(path, follow=True)
    appends, polls = [], []
    with SessionWriter.open(path) as writer:
        beats = (beat.event for beat in synthetic.timeline(2000, seed=1))
        for tick in range(200):
            batch = list(itertools.islice(beats, 20))
            appends += timed(lambda batch=batch: writer.append(batch), 1)  # type: ignore[misc]
            polls += timed(lambda tick=tick: feed.poll(tick / 10), 1)  # type: ignore[misc]
    feed.close()
    return spread("append_20", appends) | spread("poll_20", polls)


def timed(action: Callable[[], object], count: int) -> list[float]:
    """Milliseconds of each call."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        action()
        found.append(1e3 * (time.perf_counter() - begin))
    return found


def spread(name: str, values_ms: list[float]) -> dict[str, float]:
    ordered = sorted(values_ms)
    return {
        f"{name}_p50_ms": round(statistics.median(ordered), 1),
        f"{name}_p95_ms": round(ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 1),
        f"{name}_max_ms": round(ordered[-1], 1),
    }


if __name__ == "__main__":
    main()
