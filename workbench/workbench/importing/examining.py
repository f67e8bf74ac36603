"""One file in a sandbox of its own: its cost without data, a smaller copy where asked, then described and linted."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from workbench.importing.checkout import Found
from workbench.importing.fitting import Target, fit
from workbench.importing.rows import Row, classified
from workbench.importing.sizes import changed, sizes, titled, with_sizes
from workbench_engine.referee.worker_process import Worker, WorkerFailed, reference_worker
from workbench_engine.referee.workers import wire
from workbench_engine.sandbox.level import SandboxLevel
from workbench_engine.tasks.contract import Task
from workbench_engine.tasks.cost import Estimate

GIB = 1 << 30


class Care(Struct, frozen=True):
    """How files are examined: seconds and bytes each may take, and whether large ones are cut."""

    deadline_s: float
    memory_bytes: int
    shrink: bool = False
    target: Target = Target()


class Examined(Struct, frozen=True):
    """The row of a file and the source that is kept of it (the file's own unless it was cut)."""

    row: Row
    source: str


class _Described(Struct):
    task: Task


class Examiner:
    """Examines files one after the other, each in a worker that saw no other file; one of these a thread.

    The next worker starts while the current one is busy, which hides the import of torch.
    """

    def __init__(self, level: SandboxLevel, care: Care, cores: Sequence[int]) -> None:
        self._level = level
        self._care = care
        self._cores = list(cores)
        self._current: Worker | None = None
        self._spare: Worker | None = None
        self._closed = False
        self._lock = threading.Lock()

    def examine(self, found: Found, more: bool = False) -> Examined:
        """The row of a file; `more`: another will follow. Never raises for what a file does."""
        begun = time.monotonic()
        row = Row(
            level=found.level,
            number=found.number,
            name=found.name,
            path=found.path,
            sha256=hashlib.sha256(found.source.encode()).hexdigest(),
            state="cannot open",
            shrink=self._care.shrink,
            memory_bytes=self._care.memory_bytes,
            deadline_s=self._care.deadline_s,
        )
        if found.problem:
            return Examined(replace(row, cause="unreadable", reason=found.problem), "")
        worker = self._take(more)
        try:
            examined = self._open(worker, found, row, begun)
        finally:
            worker.close()
        return Examined(replace(examined.row, seconds=round(time.monotonic() - begun, 2)), examined.source)

    def close(self) -> None:
        """Ends its workers; from another thread too, then what `examine` waits for ends at once."""
        with self._lock:
            self._closed = True
            for worker in (self._current, self._spare):
                if worker is not None:
                    worker.process.kill()

    def _take(self, more: bool) -> Worker:
        with self._lock:
            worker = self._spare or self._start()
            self._current, self._spare = worker, (self._start() if more and not self._closed else None)
        return worker

    def _start(self) -> Worker:
        return reference_worker(self._level, self._cores, threads=1)

    def _open(self, worker: Worker, found: Found, row: Row, begun: float) -> Examined:
        """Estimate, cut, describe: each with what is left of the deadline."""
        deadline_s = self._care.deadline_s
        source, path = found.source, found.path

        def ask(kind: int, text: str) -> bytes:
            left = deadline_s - (time.monotonic() - begun)
            request = json.dumps({"source": text, "path": path}).encode()
            return worker.request(kind, request, max(left, 0.1))

        def oracle(text: str) -> Estimate | None:
            try:
                tried = msgspec.json.decode(ask(wire.ESTIMATE, text), type=Estimate)
            except WorkerFailed as failure:
                if failure.code != "refused":
                    raise
                return None
            return tried if tried.complete else None

        try:
            original = msgspec.json.decode(ask(wire.ESTIMATE, source), type=Estimate)
            row = replace(row, estimate=original, original=original)
            if self._care.shrink and original.complete and not self._care.target.met(original):
                known = sizes(source)
                fitted = fit(source, original, self._care.target, oracle)
                if fitted.values:
                    said = changed(known, fitted.values)
                    row = replace(row, sizes=said, estimate=fitted.found)
                    title = f"{found.name}, KernelBench level {found.level}, cut for a CPU: {', '.join(said)}"
                    source = titled(with_sizes(source, known, fitted.values), title)
            needed = row.estimate.lint_bytes if row.estimate else 0
            if needed > self._care.memory_bytes:
                return Examined(_refused(row, _too_large(needed, self._care), path), source)
            described = msgspec.json.decode(ask(wire.DESCRIBE, source), type=_Described).task
        except WorkerFailed as failure:
            return Examined(_refused(row, str(failure), path), source)
        except msgspec.DecodeError as error:
            return Examined(_refused(row, f"the worker's answer cannot be read: {error}", path), source)
        if described.stochastic:
            reason = "draws random numbers in forward: two runs on the same inputs differ, no candidate can be compared"
            return Examined(_refused(row, reason, path), source)
        return Examined(replace(row, state="clean", dtype=described.dtype), source)


def _refused(row: Row, reason: str, path: str) -> Row:
    plain = " ".join(reason.removeprefix(f"{path}: ").split())
    state, cause = classified(plain)
    return replace(row, state=state, cause=cause, reason=plain[:400])


def _too_large(needed: int, care: Care) -> str:
    hint = "" if care.shrink else "; --shrink keeps a smaller copy"
    return (
        f"too large: describing it takes about {needed / GIB:.1f} GiB, {care.memory_bytes / GIB:.1f} GiB are allowed "
        f"(--memory){hint}"
    )
