"""Control groups where they can be had: a cap on processes and memory of a whole cage.

Rlimits do not cover everything: RLIMIT_NPROC exempts root (also root mapped to nobody inside a user namespace),
RLIMIT_AS counts a process, not a tree, and neither counts what lies in a memory file. Where this process may create
control groups (as root; or in a part of the tree that systemd delegates to the user) each cage gets its own; elsewhere
the rlimits hold, which they do for an ordinary user.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path

from workbench_engine.sandbox.limits import Limits

ROOT = Path("/sys/fs/cgroup")
LARGEST_SHARE = 0.75
"""Of this machine's memory, whatever the limits say: a smaller machine must survive a memory bomb too."""
_serial = itertools.count()


def available() -> bool:
    """Whether a cage's processes and memory can both be capped here: a group is made and removed again.

    Also removes the empty groups of engines that were killed.
    """
    for parent, _ in _parents():
        for folder in parent.glob("workbench-*"):
            if not Path(f"/proc/{folder.name.split('-')[1]}").exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()
    group = ControlGroup(Limits())
    try:
        return group.capped == {"pids", "memory"}
    finally:
        group.close()


def _memory_cap(limits: Limits) -> int:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(limits.memory_bytes, int(total * LARGEST_SHARE))


def _parents() -> list[tuple[Path, set[str]]]:
    """(folder in which groups may be made, what can be capped there)."""
    if not (ROOT / "cgroup.controllers").exists():
        return [(ROOT / "pids", {"pids"}), (ROOT / "memory", {"memory"})]
    found = []
    for folder in (_own_parent(), ROOT):
        with contextlib.suppress(OSError):
            enabled = set((folder / "cgroup.subtree_control").read_text().split())
            if enabled >= {"pids", "memory"} and os.access(folder / "cgroup.procs", os.W_OK):
                found.append((folder, {"pids", "memory"}))
    return found[:1]


def _own_parent() -> Path:
    """The folder above this process's own group: siblings may be made there if it is delegated."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::/"):
            return (ROOT / line[4:].lstrip("/")).parent if line != "0::/" else ROOT
    return ROOT


def _settings(limits: Limits) -> list[tuple[str, str, str]]:
    """(kind, file, value), of both hierarchies; those a folder lacks are skipped. Swap would let memory grow on."""
    memory = str(_memory_cap(limits))
    return [
        ("pids", "pids.max", str(limits.processes)),
        ("memory", "memory.max", memory),
        ("memory", "memory.limit_in_bytes", memory),
        ("", "memory.swap.max", "0"),
        ("", "memory.memsw.limit_in_bytes", memory),
    ]


class ControlGroup:
    """The folders of one cage; none when none could be made (then `ulimit` alone holds).

    `capped`: which of "pids" and "memory" hold.
    """

    def __init__(self, limits: Limits) -> None:
        self._folders: list[Path] = []
        self.capped: set[str] = set()
        name = f"workbench-{os.getpid()}-{next(_serial)}"
        for parent, kinds in _parents():
            folder = parent / name
            try:
                folder.mkdir()
            except OSError:
                continue
            held = self._set(folder, limits) & kinds
            if held:
                self._folders.append(folder)
                self.capped |= held
            else:
                _remove(folder)

    @staticmethod
    def _set(folder: Path, limits: Limits) -> set[str]:
        held = set()
        for kind, file, value in _settings(limits):
            if (folder / file).exists():
                with contextlib.suppress(OSError):
                    (folder / file).write_text(value)
                    held.add(kind)
        return held - {""}

    def joining(self, argv: list[str]) -> list[str]:
        """`argv` preceded by a shell that puts itself into the group, so that everything it starts is counted."""
        if not self._folders:
            return argv
        joins = " && ".join(f"echo $$ > {folder}/cgroup.procs" for folder in self._folders)
        return ["/bin/sh", "-c", f'{joins} || exit 97; exec "$@"', "sh", *argv]

    def kill(self) -> None:
        """SIGKILL everything in the group at once, where the kernel offers it."""
        for folder in self._folders:
            with contextlib.suppress(OSError):
                if (folder / "cgroup.kill").exists():
                    (folder / "cgroup.kill").write_text("1")

    def close(self) -> None:
        """Remove the folders once their processes are gone (at most 1 s each; a leftover is empty and harmless)."""
        for folder in self._folders:
            _remove(folder)
        self._folders = []


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + 1.0
    while folder.exists() and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.01)
