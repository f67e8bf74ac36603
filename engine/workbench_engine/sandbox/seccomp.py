"""Which system calls untrusted code may make, as filters for the kernel (seccomp_data is described in linux/seccomp.h).

Three filters, each narrower than the last; the kernel applies all that are installed and the strictest answer wins:

- `CAGE`: of every cage, handed to bubblewrap. Refuses what reaches other processes, mounts, namespaces, the network and
  the machine; leaves what torch, OpenMP, CUDA's start (memfd_create) and compilers need.
- `MODULE`: of a worker that executes a candidate's Python, installed by the worker itself: the core it is measured on
  cannot be left.
- `KERNEL`: of a worker that calls a candidate's shared object, likewise: no new process, no new program, no socket.
"""

from __future__ import annotations

import errno
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from workbench_engine.sandbox.bpf import (
    ANY_BIT,
    EQUAL,
    GREATER_OR_EQUAL,
    Instruction,
    assemble,
    end,
    load,
    unless,
    when,
)
from workbench_engine.sandbox.syscalls import FIRST_UNKNOWN, NUMBERS

NUMBER, ARCH, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
"""Offsets in seccomp_data; of an argument the low word, which is all the calls looked at here use (little-endian)."""

ALLOW = 0x7FFF0000
KILL = 0x80000000
"""SECCOMP_RET_KILL_PROCESS."""
REFUSE = 0x00050000 | errno.EPERM
ABSENT = 0x00050000 | errno.ENOSYS

X32_BIT = 0x40000000
AF_UNIX = 1
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
CLONE_THREAD = 0x00010000
NEW_NAMESPACE = 0x02000000 | 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
"""CLONE_NEWCGROUP, NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. (NEWTIME exists for unshare and clone3 only.)"""


class Architecture(Struct, frozen=True):
    """`audit`: AUDIT_ARCH_*; `column`: of the table of numbers."""

    name: str
    audit: int
    column: int
    x32: bool = False


ARCHITECTURES = {
    "x86_64": Architecture("x86_64", 0xC000003E, 0, x32=True),
    "aarch64": Architecture("aarch64", 0xC00000B7, 1),
}


class Rules(Struct, frozen=True):
    """Calls by name: `refused` always (EPERM), `absent` always (ENOSYS), some by argument. Everything else goes on."""

    refused: tuple[str, ...]
    absent: tuple[str, ...] = ("clone3",)
    """Its flags lie in memory, where a filter cannot look; the C library then falls back to clone."""
    unix_sockets_only: bool = False
    threads_only: bool = False
    """Refuse every clone that is not a thread, rather than only those that make namespaces."""


_LOOKED_AT = ("clone", "clone3", "fork", "vfork", "execve", "execveat", "socket", "socketpair", "ioctl")
_OF_OTHERS = ("connect", "bind", "listen", "accept", "accept4", "sched_setaffinity", "memfd_create")

CAGE = Rules(
    refused=tuple(name for name in NUMBERS if name not in (*_LOOKED_AT, *_OF_OTHERS)),
    unix_sockets_only=True,
)
MODULE = Rules(refused=("sched_setaffinity",))
KERNEL = Rules(
    refused=("fork", "vfork", "execve", "execveat", "socket", "socketpair", *_OF_OTHERS),
    threads_only=True,
)


class NoFilter(Exception):
    """No filter can be made for this processor. `str()` says which."""


def here() -> Architecture:
    """The architecture of this process. Raises NoFilter."""
    name = platform.machine()
    if name not in ARCHITECTURES:
        raise NoFilter(f"no table of system calls for {name} (known: {', '.join(ARCHITECTURES)})")
    return ARCHITECTURES[name]


def program(rules: Rules, architecture: Architecture) -> list[Instruction]:
    """The filter's instructions."""

    def each(names: tuple[str, ...], then: list[Instruction]) -> Iterator[Instruction]:
        for name in names:
            number = NUMBERS[name][architecture.column]
            if number is not None:
                yield from when(EQUAL, number, then)

    lines = [*load(ARCH), *unless(EQUAL, architecture.audit, end(KILL)), *load(NUMBER)]
    if architecture.x32:
        lines += when(GREATER_OR_EQUAL, X32_BIT, end(KILL))
    lines += when(GREATER_OR_EQUAL, FIRST_UNKNOWN, end(ABSENT))
    lines += each(rules.refused, end(REFUSE))
    lines += each(rules.absent, end(ABSENT))
    if rules.threads_only:
        no_thread = unless(ANY_BIT, CLONE_THREAD, end(REFUSE))
    else:
        no_thread = when(ANY_BIT, NEW_NAMESPACE, end(REFUSE))
    lines += each(("clone",), [*load(FIRST_ARGUMENT), *no_thread, *end(ALLOW)])
    if rules.unix_sockets_only:
        local = [*load(FIRST_ARGUMENT), *unless(EQUAL, AF_UNIX, end(REFUSE)), *end(ALLOW)]
        lines += each(("socket", "socketpair"), local)
    typing = [*when(EQUAL, TIOCSTI, end(REFUSE)), *when(EQUAL, TIOCLINUX, end(REFUSE))]
    lines += each(("ioctl",), [*load(SECOND_ARGUMENT), *typing, *end(ALLOW)])
    return [*lines, *end(ALLOW)]


def compiled(rules: Rules) -> bytes:
    """The filter for this machine. Raises NoFilter."""
    return assemble(program(rules, here()))


@contextmanager
def inherited(code: bytes) -> Iterator[int]:
    """A descriptor from which a child reads `code` to its end: for `bwrap --seccomp`. Fits into any pipe's buffer."""
    reading, writing = os.pipe()
    try:
        os.write(writing, code)
        os.close(writing)
        writing = -1
        yield reading
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
