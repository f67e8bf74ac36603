"""One caged worker as the station sees it: requests with deadlines, and a death that is always explained."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from workbench_engine.referee.workers import wire
from workbench_engine.sandbox.cage import ENGINE_ROOT, Cage, base_environment, python_environment
from workbench_engine.sandbox.level import SandboxLevel
from workbench_engine.sandbox.limits import KERNEL, MODULE, REFERENCE
from workbench_engine.sandbox.process import CagedProcess

WORKERS = Path(__file__).parent / "workers"
PACKAGE = Path(__file__).parent.parent


class WorkerFailed(Exception):
    """The worker died, overran a deadline or answered with an error. `str()` is feedback for a person or a prompt."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code
        """"crashed", "deadline", "refused" or "garbage"."""


class Worker:
    """Channel and process of one caged worker."""

    def __init__(
        self,
        level: SandboxLevel,
        cage: Cage,
        script: str,
        arguments: Sequence[str],
        affinity: Sequence[int],
        bare: bool,
    ) -> None:
        ours, theirs = socket.socketpair()
        self.channel = ours
        inside = f"{ENGINE_ROOT}/workers" if level.bwrap else str(WORKERS)
        flags = ["-I", "-S"] if bare else ["-I"]
        program = [sys.executable, *flags, f"{inside}/{script}", str(theirs.fileno()), *arguments]
        self.process = CagedProcess(level, cage, program, pass_fds=[theirs.fileno()], affinity=affinity)
        theirs.close()
        self.returns_tensors = not bare
        """Whether outputs reach the arena only when collected (modules), or are written there by the call (kernels)."""

    def request(self, kind: int, payload: bytes, deadline_s: float, fds: tuple[int, ...] = ()) -> bytes:
        """Send and wait for the answer. Raises WorkerFailed; a worker past its deadline is killed."""
        self.channel.settimeout(deadline_s)
        try:
            wire.send(self.channel, kind, payload, fds)
            answer, body, _ = wire.receive(self.channel)
        except TimeoutError:
            self.process.kill()
            raise WorkerFailed(f"no answer within {deadline_s:.3g} s: killed", "deadline") from None
        except wire.Closed:
            raise WorkerFailed(self._death(), "crashed") from None
        except ValueError as error:
            self.process.kill()
            raise WorkerFailed(f"garbage on the channel ({error}): killed", "garbage") from None
        if answer == wire.ERROR:
            raise WorkerFailed(body.decode("utf-8", "replace")[:4000], "refused")
        if answer not in (wire.OK, wire.DONE):
            self.process.kill()
            raise WorkerFailed(f"garbage on the channel (kind {answer}): killed", "garbage")
        return body

    def _death(self) -> str:
        text = f"the worker process ended: {self.process.death()}"
        output = self.process.output().strip()
        return f"{text}; it printed: {output[-1500:]}" if output else text

    def timed_run(self, payload: bytes, deadline_s: float) -> tuple[float, float]:
        """(outside seconds, seconds the worker claims) of one RUN request."""
        self.channel.settimeout(deadline_s)
        frame = wire.HEADER.pack(len(payload), wire.RUN) + payload
        channel = self.channel
        try:
            start = time.perf_counter_ns()
            channel.sendall(frame)
            head = channel.recv(13)
            spent = time.perf_counter_ns() - start
        except TimeoutError:
            self.process.kill()
            raise WorkerFailed(f"a call took more than {deadline_s:.3g} s: killed", "deadline") from None
        except (BrokenPipeError, ConnectionResetError):
            head = b""
        if len(head) == 13 and head[4] == wire.DONE:
            return spent * 1e-9, wire.CLAIM.unpack(head[5:])[0] * 1e-9
        if head[4:5] == bytes([wire.ERROR]):
            length = wire.HEADER.unpack(head[:5])[0]
            text = head[5:]
            while len(text) < min(length, 4000):
                part = channel.recv(4000)
                if not part:
                    break
                text += part
            raise WorkerFailed(text.decode("utf-8", "replace"), "refused")
        if not head:
            raise WorkerFailed(self._death(), "crashed")
        self.process.kill()
        raise WorkerFailed("garbage on the channel: killed", "garbage")

    def round_trip(self, times: int = 40) -> float:
        """Median seconds of a RUN of no slots: what the outside clock adds to each timed block."""
        return sorted(self.timed_run(b"", 10.0)[0] for _ in range(times))[times // 2]

    def close(self) -> None:
        self.channel.close()
        self.process.close()


def _workers_mount() -> tuple[tuple[str, str], ...]:
    return ((str(WORKERS), f"{ENGINE_ROOT}/workers"),)


def kernel_worker(level: SandboxLevel, affinity: Sequence[int], threads: int) -> Worker:
    """A warm worker for a `kernel` candidate: a bare interpreter, about 30 ms to start."""
    cage = Cage(
        limits=KERNEL,
        readonly=python_environment(),
        mounts=_workers_mount(),
        environment=base_environment(threads),
    )
    return Worker(level, cage, "kernel.py", [], affinity, bare=True)


def module_worker(level: SandboxLevel, affinity: Sequence[int], threads: int, entry: str = "ModelNew") -> Worker:
    """A warm worker for a `module` candidate: torch imported, 2 s to start."""
    cage = Cage(
        limits=MODULE,
        readonly=python_environment(),
        mounts=_workers_mount(),
        environment=base_environment(threads),
    )
    return Worker(level, cage, "module.py", [entry], affinity, bare=False)


def reference_worker(level: SandboxLevel, affinity: Sequence[int], threads: int) -> Worker:
    """The worker that holds the task's reference. Task files are untrusted too: same cage, plus our task loader."""
    mounts = (*_workers_mount(), (str(PACKAGE), f"{ENGINE_ROOT}/packages/workbench_engine"))
    cage = Cage(limits=REFERENCE, readonly=python_environment(), mounts=mounts, environment=base_environment(threads))
    packages = f"{ENGINE_ROOT}/packages" if level.bwrap else str(PACKAGE.parent)
    return Worker(level, cage, "reference.py", [packages], affinity, bare=False)
