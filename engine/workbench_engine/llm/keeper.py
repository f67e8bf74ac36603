"""Keeps one server: a small process between the engine and `vllm serve`, so that no process is ever left behind.

Started as a plain file with the server's command line as arguments. It ends the server and every process that came of
it when its stdin closes, which the kernel does even for an engine that was killed. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 8.0
"""So long a server has to end by itself."""

LOOK_S = 0.2


def main(argv: list[str]) -> int:
    """Runs `argv`; returns its exit status (128 + signal for one that a signal ended)."""
    # Orphans of the server become our children, so that all of them can be found and waited for.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os._exit(1) if not _started else _asked.append(True))
    try:
        server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f"cannot be started: {argv[0]}: {error.strerror or error}", file=sys.stderr, flush=True)
        return 127
    _started.append(True)
    while server.poll() is None and not _asked and not _closed():
        pass
    status = server.poll()
    if status is None:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        deadline_s = time.monotonic() + GRACE_S
        while _reaped() and time.monotonic() < deadline_s:
            time.sleep(LOOK_S / 4)
    while _reaped():
        for pid in descendants(os.getpid(), parents()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S / 4)
    if status is None:
        return 0
    return status if status >= 0 else 128 - status


_started: list[bool] = []
_asked: list[bool] = []


def _closed() -> bool:
    """Whether stdin has ended; waits a little."""
    try:
        ready, _, _ = select.select([0], [], [], LOOK_S)
        return bool(ready) and not os.read(0, 4096)
    except InterruptedError:
        return False
    except OSError:
        return True


def _reaped() -> bool:
    """Collects what has ended; whether any child is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def parents() -> dict[int, int]:
    """Every process's parent."""
    found: dict[int, int] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                text = (place / "stat").read_text(encoding="utf-8", errors="replace")
                found[int(place.name)] = int(text.rpartition(")")[2].split()[1])
    return found


def descendants(of: int, parent_of: dict[int, int]) -> list[int]:
    """All processes that came of `of`, itself left out. Pure."""
    found: list[int] = []
    level = [of]
    while level:
        level = [pid for pid, parent in parent_of.items() if parent in level and pid not in found]
        found += level
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
