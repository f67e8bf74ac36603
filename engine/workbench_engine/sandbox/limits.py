"""How much an untrusted process may take, as a shell preamble that runs inside the cage.

The limits are set by `ulimit` before the program starts, so that they hold for compilers as well as for our workers,
and are hard limits: an unprivileged process cannot raise them again.
"""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True):
    """Caps of one caged process tree. Sizes in bytes, times in seconds."""

    memory_bytes: int = 6 << 30
    cpu_s: int = 120
    file_bytes: int = 64 << 20
    open_files: int = 256
    processes: int = 512
    scratch_bytes: int = 512 << 20
    shared_bytes: int = 64 << 20
    """Of /dev/shm."""


PROBE = Limits(memory_bytes=1 << 30, cpu_s=10, processes=64, scratch_bytes=1 << 20)
COMPILE = Limits(memory_bytes=4 << 30, cpu_s=60, file_bytes=256 << 20, scratch_bytes=1 << 30)
KERNEL = Limits(memory_bytes=4 << 30, cpu_s=300)
MODULE = Limits(memory_bytes=12 << 30, cpu_s=300)
REFERENCE = Limits(memory_bytes=16 << 30, cpu_s=86_400, processes=1024)


def preamble(limits: Limits) -> str:
    """A POSIX shell text that sets `limits` and then becomes the program given as arguments."""
    return (
        # When the whole machine runs out of memory, this goes first.
        "echo 1000 > /proc/self/oom_score_adj 2>/dev/null; "
        # A crash handler that the machine pipes cores to is not held off by `ulimit -c`: give it next to nothing.
        "echo 0 > /proc/self/coredump_filter 2>/dev/null; "
        f"ulimit -v {limits.memory_bytes // 1024}; ulimit -t {limits.cpu_s}; ulimit -f {limits.file_bytes // 512}; "
        f"ulimit -n {limits.open_files}; ulimit -c 0; "
        f'ulimit -u {limits.processes} 2>/dev/null || ulimit -p {limits.processes} 2>/dev/null; exec "$@"'
    )
