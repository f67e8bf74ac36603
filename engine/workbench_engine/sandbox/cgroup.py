"""Control groups where they can be had: a cap on processes and memory of a whole cage.

Rlimits do not cover everything: RLIMIT_NPROC exempts root (also root mapped to nobody inside a user namespace), and
RLIMIT_AS counts a process, not a tree. Where this process may create control groups (as root, v1 or v2) each cage gets
its own; elsewhere the rlimits hold, which they do for an ordinary user.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path

from workbench_engine.sandbox.limits import Limits

ROOT = Path("/sys/fs/cgroup")
_serial = itertools.count()


def _groups(limits: Limits) -> list[tuple[Path, str, str]]:
    """(parent folder, file, value) of each cap that this machine's hierarchy offers."""
    memory = str(limits.memory_bytes)
    if (ROOT / "cgroup.controllers").exists():
        return [(ROOT, "pids.max", str(limits.processes)), (ROOT, "memory.max", memory)]
    return [
        (ROOT / "pids", "pids.max", str(limits.processes)),
        (ROOT / "memory", "memory.limit_in_bytes", memory),
    ]


class ControlGroup:
    """The folders of one cage; empty when none could be made (then `ulimit` alone holds)."""

    def __init__(self, limits: Limits) -> None:
        self._folders: list[Path] = []
        if os.geteuid() != 0:
            return
        name = f"workbench-{os.getpid()}-{next(_serial)}"
        for parent, file, value in _groups(limits):
            folder = parent / name
            try:
                folder.mkdir(exist_ok=True)
                if folder not in self._folders:
                    self._folders.append(folder)
                (folder / file).write_text(value)
            except OSError:
                continue

    def joining(self, argv: list[str]) -> list[str]:
        """`argv` preceded by a shell that puts itself into the group, so that everything it starts is counted."""
        if not self._folders:
            return argv
        joins = "; ".join(f"echo $$ > {folder}/cgroup.procs" for folder in self._folders)
        return ["/bin/sh", "-c", f'{joins}; exec "$@"', "sh", *argv]

    def close(self) -> None:
        """Remove the folders once their processes are gone (at most 1 s; a leftover is empty and harmless)."""
        for folder in self._folders:
            deadline = time.monotonic() + 1.0
            while folder.exists() and time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.01)
        self._folders = []
