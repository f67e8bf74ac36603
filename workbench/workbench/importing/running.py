"""The import itself: files examined, one or more at a time, each kept before the next begins."""

from __future__ import annotations

import hashlib
import os
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.errors import EnvironmentProblem, UsageProblem
from workbench.importing.checkout import Found
from workbench.importing.examining import Care, Examined, Examiner
from workbench.importing.rows import Row
from workbench.importing.stored import Collection
from workbench_engine.sandbox.level import SandboxUnavailable, probe

Say = Callable[[Row, int, int], None]
"""Hears each row with its place and the number of all that are examined."""


def finished(row: Row, found: Found, care: Care, retry: bool) -> bool:
    """Whether a kept row still says what an examination of `found` with `care` would say."""
    same = row.sha256 == hashlib.sha256(found.source.encode()).hexdigest() and row.path == found.path
    return same and row.shrink == care.shrink and not (retry and row.state == "cannot open")


def waiting(files: Sequence[Found], kept: Sequence[Row], care: Care, retry: bool) -> list[Found]:
    """The files that have to be examined."""
    by_name = {(row.level, row.number, row.name): row for row in kept}
    return [
        found
        for found in files
        if (row := by_name.get((found.level, found.number, found.name))) is None
        or not finished(row, found, care, retry)
    ]


def import_files(files: Sequence[Found], into: Collection, care: Care, jobs: int, trust: bool, say: Say) -> None:
    """Examines `files` and keeps each. Raises EnvironmentProblem without a sandbox, UsageProblem for too many jobs."""
    try:
        level = probe(trust)
    except SandboxUnavailable as error:
        raise EnvironmentProblem(str(error)) from None
    cores = sorted(os.sched_getaffinity(0))
    if jobs > len(cores):
        raise UsageProblem(f"--jobs {jobs}: this process may use {len(cores)} cores")
    todo: queue.SimpleQueue[Found] = queue.SimpleQueue()
    for found in files:
        todo.put(found)
    done: queue.SimpleQueue[Examined | BaseException] = queue.SimpleQueue()
    examiners = [Examiner(level, care, cores[i::jobs]) for i in range(jobs)]
    stop = threading.Event()
    threads = [threading.Thread(target=_work, args=(one, todo, done, stop), daemon=True) for one in examiners]
    for thread in threads:
        thread.start()
    try:
        for place in range(1, len(files) + 1):
            examined = done.get()
            if isinstance(examined, BaseException):
                raise examined
            into.add(examined.row, examined.source)
            say(examined.row, place, len(files))
    finally:
        stop.set()
        for one in examiners:
            one.close()
        for thread in threads:
            thread.join(timeout=10.0)


def _work(
    examiner: Examiner,
    todo: queue.SimpleQueue[Found],
    done: queue.SimpleQueue[Examined | BaseException],
    stop: threading.Event,
) -> None:
    """One thread: a cage dies with the thread that started it, so each examines with workers of its own."""
    try:
        while not stop.is_set():
            try:
                found = todo.get_nowait()
            except queue.Empty:
                break
            done.put(examiner.examine(found, more=not todo.empty()))
    except BaseException as error:
        done.put(error)
    finally:
        examiner.close()


def default_memory(jobs: int) -> int:
    """Bytes a file may take when nothing is said: six tenths of what this machine has free, shared by the jobs."""
    free = 0
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    return max(1 << 30, free * 6 // 10 // jobs)
