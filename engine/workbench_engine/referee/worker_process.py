"""One caged worker as the station sees it: requests with deadlines, and a death that is always explained."""

from __future__ import annotations

import secrets
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from workbench_engine.referee.activity import Activity
from workbench_engine.referee.workers import wire
from workbench_engine.sandbox import seccomp
from workbench_engine.sandbox.cage import ENGINE_ROOT, Cage, base_environment, python_environment
from workbench_engine.sandbox.level import SandboxLevel
from workbench_engine.sandbox.limits import KERNEL, MODULE, REFERENCE
from workbench_engine.sandbox.process import CagedProcess, printable

WORKERS = Path(__file__).parent / "workers"
PACKAGE = Path(__file__).parent.parent
TOLD = frozenset({"not-a-tensor"})
"""Findings that a worker itself may report with an error."""
ANSWER = wire.HEADER.size + wire.CLAIM.size
"""Bytes of the answer to a call."""


class WorkerFailed(Exception):
    """The worker died, overran a deadline or answered with an error. `str()` is feedback for a person or a prompt."""

    def __init__(self, text: str, code: str, finding: str = "") -> None:
        super().__init__(text)
        self.finding = finding
        self.code = code
        """"crashed", "deadline", "refused" or "forged"."""


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
        self.activity = Activity(self.process.pid)
        self.returns_tensors = not bare
        """Whether outputs reach the arena only when collected (modules), or are written there by the call (kernels)."""

    def request(self, kind: int, payload: bytes, deadline_s: float, fds: tuple[int, ...] = ()) -> bytes:
        """Send and wait for the answer. Raises WorkerFailed; a worker past its deadline is killed."""
        self.channel.settimeout(deadline_s)
        until = time.monotonic() + deadline_s
        try:
            wire.send(self.channel, kind, payload, fds)
            answer, body, _ = wire.receive(self.channel, until=until)
        except TimeoutError:
            raise WorkerFailed(f"no answer within {deadline_s:.3g} s: {self._end()}", "deadline") from None
        except wire.Closed:
            raise WorkerFailed(self._death(), "crashed") from None
        except ValueError as error:
            text = f"garbage on the channel ({error}): {self._end()}"
            raise WorkerFailed(text, "forged", "result-channel") from None
        if answer == wire.ERROR:
            raise self._refused(printable(body.decode("utf-8", "replace")[:4000]))
        if answer != wire.OK:
            raise self._forged(f"kind {answer} where {wire.OK} is due")
        return body

    @staticmethod
    def _refused(text: str) -> WorkerFailed:
        first, _, rest = text.partition("\n")
        return WorkerFailed(rest, "refused", first) if rest and first in TOLD else WorkerFailed(text, "refused")

    def _forged(self, what: str) -> WorkerFailed:
        text = f"an answer on the channel that nobody asked for ({what}): {self._end()}"
        return WorkerFailed(text, "forged", "result-channel")

    def _end(self) -> str:
        """SIGKILL the whole cage; in words how that went."""
        return "killed" if self.process.kill() else self.process.death()

    def _death(self) -> str:
        text = f"the worker process ended: {self.process.death()}"
        output = self.process.output().strip()
        return f"{text}; it printed: {output[-1500:]}" if output else text

    def timed_run(self, payload: bytes, deadline_s: float) -> tuple[float, float]:
        """(outside seconds, seconds the worker claims) of one RUN request for packed slots."""
        return self._timed(wire.RUN, payload, deadline_s)

    def _timed(self, kind: int, payload: bytes, deadline_s: float) -> tuple[float, float]:
        self.channel.settimeout(deadline_s)
        nonce = secrets.token_bytes(wire.NONCE)
        frame = wire.HEADER.pack(wire.NONCE + len(payload), kind) + nonce + payload
        channel = self.channel
        try:
            start = time.perf_counter_ns()
            channel.sendall(frame)
            head = channel.recv(ANSWER)
            spent = time.perf_counter_ns() - start
        except TimeoutError:
            raise WorkerFailed(f"a call took more than {deadline_s:.3g} s: {self._end()}", "deadline") from None
        except (BrokenPipeError, ConnectionResetError):
            head = b""
        if len(head) == ANSWER and head[4] == wire.DONE:
            claim, echo = wire.CLAIM.unpack(head[wire.HEADER.size :])
            if echo != nonce:
                raise self._forged("a time for a call that was not made")
            return spent * 1e-9, claim * 1e-9
        if head[4:5] == bytes([wire.ERROR]):
            raise self._refused(self._rest_of(head, deadline_s))
        if not head:
            raise WorkerFailed(self._death(), "crashed")
        raise self._forged("not an answer to a call")

    def _rest_of(self, head: bytes, deadline_s: float) -> str:
        """The text of an error whose first bytes came. Raises WorkerFailed when the rest does not come in time."""
        length = wire.HEADER.unpack(head[: wire.HEADER.size])[0]
        text = head[wire.HEADER.size :]
        until = time.monotonic() + deadline_s
        try:
            while len(text) < min(length, 4000):
                wire.wait_no_longer(self.channel, until)
                part = self.channel.recv(4000)
                if not part:
                    break
                text += part
        except TimeoutError:
            raise WorkerFailed(f"an answer took more than {deadline_s:.3g} s: {self._end()}", "deadline") from None
        except ConnectionResetError:
            pass
        return printable(text.decode("utf-8", "replace"))

    def round_trip(self, times: int = 40) -> float:
        """Median seconds of a RUN of no slots: what the outside clock adds to each timed block."""
        return sorted(self.timed_run(b"", 10.0)[0] for _ in range(times))[times // 2]

    def close(self) -> None:
        self.channel.close()
        self.process.close()


def _workers_mount() -> tuple[tuple[str, str], ...]:
    return ((str(WORKERS), f"{ENGINE_ROOT}/workers"),)


def _lock(level: SandboxLevel, rules: seccomp.Rules) -> str:
    """What the worker installs before it loads a candidate (workers/locking.py); "" without a sandbox."""
    return seccomp.compiled(rules).hex() if level.seccomp else ""


def kernel_worker(level: SandboxLevel, affinity: Sequence[int], threads: int) -> Worker:
    """A warm worker for a `kernel` candidate: a bare interpreter, about 30 ms to start."""
    cage = Cage(
        limits=KERNEL,
        readonly=python_environment(),
        mounts=_workers_mount(),
        environment=base_environment(threads),
    )
    return Worker(level, cage, "kernel.py", [_lock(level, seccomp.KERNEL)], affinity, bare=True)


def module_worker(level: SandboxLevel, affinity: Sequence[int], threads: int, entry: str = "ModelNew") -> Worker:
    """A warm worker for a `module` candidate: torch imported, 2 s to start."""
    cage = Cage(
        limits=MODULE,
        readonly=python_environment(),
        mounts=_workers_mount(),
        environment=base_environment(threads),
    )
    return Worker(level, cage, "module.py", [entry, _lock(level, seccomp.MODULE)], affinity, bare=False)


def reference_worker(level: SandboxLevel, affinity: Sequence[int], threads: int) -> Worker:
    """The worker that holds the task's reference. Task files are untrusted too: same cage, plus our task loader."""
    mounts = (*_workers_mount(), (str(PACKAGE), f"{ENGINE_ROOT}/packages/workbench_engine"))
    cage = Cage(limits=REFERENCE, readonly=python_environment(), mounts=mounts, environment=base_environment(threads))
    packages = f"{ENGINE_ROOT}/packages" if level.bwrap else str(PACKAGE.parent)
    return Worker(level, cage, "reference.py", [packages], affinity, bare=False)
