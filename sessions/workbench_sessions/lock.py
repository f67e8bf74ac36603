"""One engine a session: a lock file next to it, freed by the system when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from workbench_sessions.connection import sibling
from workbench_sessions.errors import EngineBusy, SessionUnwritable

ATTEMPTS = 25
ATTEMPT_S = 0.02


class EngineLock:
    """Held until `release`, the end of a `with` block, or the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> EngineLock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def engine_lock(path: Path | str) -> EngineLock:
    """Takes the session for this process. Raises `EngineBusy` when another engine has it.

    The lock is on NAME.wb.lock, not on the session: closing a second descriptor of a SQLite file would drop SQLite's
    own locks on it.
    """
    session = Path(path)
    try:
        descriptor = os.open(sibling(session, ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SessionUnwritable(session, error.strerror or str(error)) from error
    for attempt in range(ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            # A viewer that only looks (`engine_alive`) holds the lock for microseconds: worth another try.
            if attempt == ATTEMPTS - 1:
                pid = _pid(descriptor)
                os.close(descriptor)
                raise EngineBusy(session, pid) from None
            time.sleep(ATTEMPT_S)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return EngineLock(session, descriptor)


def engine_alive(path: Path | str) -> bool:
    """Whether a process holds the session's engine lock now."""
    try:
        descriptor = os.open(sibling(Path(path), ".lock"), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None
