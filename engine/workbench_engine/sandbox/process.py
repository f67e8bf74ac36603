"""Starting and, above all, ending a caged process.

Blocking and single-threaded on purpose: it is used by the measuring station, where nothing may wake up between two
clock readings. Output goes to an unlinked file under a size limit, so no pipe can fill up or be held open.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import IO

from workbench_engine.sandbox.cage import Cage, environment_for_popen, prepared
from workbench_engine.sandbox.cgroup import ControlGroup
from workbench_engine.sandbox.level import SandboxLevel

OUTPUT_KEPT = 16_384
"""Bytes of output kept from the end, for feedback."""


UNPRINTABLE = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
KILL_S = 5.0


def printable(text: str) -> str:
    """`text` without control characters: what untrusted code prints must not move a cursor or recolour a verdict."""
    return text.replace("\r\n", "\n").translate(UNPRINTABLE)


class CagedProcess:
    """One untrusted process tree. `kill` ends all of it; `death` says in words how it ended."""

    def __init__(
        self,
        level: SandboxLevel,
        cage: Cage,
        program: Sequence[str],
        pass_fds: Sequence[int] = (),
        affinity: Sequence[int] | None = None,
    ) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._group = ControlGroup(cage.limits)
        self._unkillable = False
        wanted = set(affinity) if affinity else None
        before = os.sched_getaffinity(0)
        try:
            # A child inherits its affinity: set ours for the moment of the fork rather than run code in the child.
            if wanted:
                os.sched_setaffinity(0, wanted)
            with prepared(level, cage, program) as (argv, fds):
                self._process = subprocess.Popen(
                    self._group.joining(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=self._output,
                    stderr=subprocess.STDOUT,
                    env=environment_for_popen(level, cage),
                    pass_fds=(*pass_fds, *fds),
                    start_new_session=True,
                    cwd="/",
                )
        finally:
            if wanted:
                os.sched_setaffinity(0, before)

    @property
    def pid(self) -> int:
        """Pid of the outer process (bubblewrap, or the program itself when trusted)."""
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> bool:
        """SIGKILL the group; with bubblewrap its pid namespace goes along. False when it cannot be reaped in 5 s."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._group.kill()
        deadline = time.monotonic() + KILL_S
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                self._unkillable = True
                return False
            time.sleep(0.002)
        return True

    def wait(self, timeout_s: float) -> int | None:
        """Exit status, or None when it still runs after `timeout_s`."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def output(self) -> str:
        """The last `OUTPUT_KEPT` bytes it printed."""
        try:
            size = self._output.seek(0, os.SEEK_END)
            self._output.seek(max(0, size - OUTPUT_KEPT))
            return printable(self._output.read(OUTPUT_KEPT).decode("utf-8", "replace"))
        except ValueError:
            return ""

    def death(self) -> str:
        """How it ended, for a person: the signal's name, or the exit status."""
        code = self.wait(1.0)
        if code is None:
            return (
                f"could not be killed within {KILL_S:g} s: it hangs in the kernel"
                if self._unkillable
                else "still running"
            )
        number = -code if code < 0 else code - 128 if code > 128 else 0
        if number:
            try:
                name = signal.Signals(number).name
            except ValueError:
                name = f"signal {number}"
            hints = {
                "SIGSEGV": "invalid memory access",
                "SIGBUS": "invalid memory access",
                "SIGFPE": "integer division by zero",
                "SIGILL": "illegal instruction",
                "SIGABRT": "aborted",
                "SIGXFSZ": "wrote more than the file size limit",
                "SIGXCPU": "used more than the CPU time limit",
                "SIGKILL": "killed",
            }
            return f"{name} ({hints[name]})" if name in hints else name
        return f"exit status {code}"

    def close(self) -> None:
        self.kill()
        self._group.close()
        self._output.close()
