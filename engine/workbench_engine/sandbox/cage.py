"""The cage around one untrusted process: the command line that shows it almost nothing of this machine.

No network, no home, no repository, no other candidate; the system read-only; a size-capped scratch; an environment of
our own; its own pid namespace, so that killing the outer process ends every descendant, detached or not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from workbench_engine.sandbox import seccomp
from workbench_engine.sandbox.level import SandboxLevel, as_nobody
from workbench_engine.sandbox.limits import Limits, preamble

SCRATCH = "/tmp"
ENGINE_ROOT = "/opt/workbench"
"""Where `visible_packages` appear inside the cage."""


class Cage(Struct, frozen=True):
    """What one kind of process is shown. Paths in `readonly` keep their names; `mounts` are (host, inside)."""

    limits: Limits
    readonly: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    writable: tuple[tuple[str, str], ...] = ()
    environment: dict[str, str] = {}


def python_environment() -> tuple[str, ...]:
    """Folders that hold this interpreter and its packages, links resolved."""
    folders = {sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)}
    folders.add(str(Path(os.path.realpath(sys.executable)).parent.parent))
    shown = (part for folder in folders if folder not in ("/", "/usr") for part in _shown_of(Path(folder)))
    return tuple(sorted(shown))


def _shown_of(prefix: Path) -> list[str]:
    """All of an environment; of one that a home folder is or lies in (`python -m venv ~`) only Python's own folders."""
    if not Path.home().is_relative_to(prefix):
        return [str(prefix)]
    parts = (prefix / name for name in ("bin", "lib", "lib64", "include", "pyvenv.cfg"))
    return [str(part) for part in parts if part.exists()]


def base_environment(threads: int = 1) -> dict[str, str]:
    """The whole environment a worker gets. The malloc settings keep large blocks in the heap on both sides, so that
    neither reference nor candidate pays page faults for each fresh 32 MB output."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "active",
        "MALLOC_MMAP_THRESHOLD_": "4294967296",
        "MALLOC_TRIM_THRESHOLD_": "8589934592",
        "MALLOC_TOP_PAD_": "268435456",
        "TRITON_CACHE_DIR": f"{SCRATCH}/triton",
        "TORCH_EXTENSIONS_DIR": f"{SCRATCH}/torch_extensions",
        "TORCHINDUCTOR_CACHE_DIR": f"{SCRATCH}/inductor",
    }


@contextmanager
def prepared(level: SandboxLevel, cage: Cage, program: Sequence[str]) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """(argv, descriptors it must inherit) that run `program` in `cage`: start it before the context ends."""
    if not level.seccomp:
        yield command(level, cage, program), ()
        return
    with seccomp.inherited(seccomp.compiled(seccomp.CAGE)) as fd:
        yield command(level, cage, program, fd), (fd,)


def command(level: SandboxLevel, cage: Cage, program: Sequence[str], filter_fd: int | None = None) -> list[str]:
    """argv that runs `program` in `cage`; without bubblewrap (trusted) only the limits apply."""
    limited = ["/bin/sh", "-c", preamble(cage.limits), "sh", *program]
    if level.bwrap is None:
        return limited
    argv = [level.bwrap, *as_nobody(), "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]
    argv += ["--unshare-cgroup-try", "--hostname", "workbench", "--die-with-parent", "--new-session", "--clearenv"]
    for key, value in cage.environment.items():
        argv += ["--setenv", key, value]
    argv += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib64", "lib32"):
        path = Path("/") / name
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), f"/{name}"]
        elif path.is_dir():
            argv += ["--ro-bind", f"/{name}", f"/{name}"]
    for name in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/ld.so.conf", "/etc/ld.so.conf.d"):
        argv += ["--ro-bind-try", name, name]
    argv += ["--proc", "/proc", "--dev", "/dev", "--ro-bind-try", "/sys/devices/system", "/sys/devices/system"]
    argv += _covered_kernel_files()
    # bubblewrap's /dev is a memory file system without a cap, and so is what is written to /dev/shm.
    argv += ["--size", str(cage.limits.shared_bytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    argv += ["--size", str(cage.limits.scratch_bytes), "--tmpfs", SCRATCH]
    for folder in cage.readonly:
        argv += ["--ro-bind", folder, folder]
    for hidden in _own_packages(cage.readonly):
        argv += ["--size", "4096", "--tmpfs", hidden, "--remount-ro", hidden]
    for host, inside in cage.mounts:
        argv += ["--ro-bind", host, inside]
    for host, inside in cage.writable:
        argv += ["--bind", host, inside]
    if filter_fd is not None:
        argv += ["--seccomp", str(filter_fd)]
    return [*argv, "--remount-ro", "/", "--chdir", SCRATCH, "--", *limited]


OWN_PACKAGES = ("workbench_engine", "workbench_sessions", "workbench_screens", "workbench")


def _own_packages(shown: Sequence[str]) -> list[str]:
    """Our packages, where they are installed among the interpreter's: they hold references and hidden shapes."""
    root = Path(__file__).parents[2]
    if not any(root.is_relative_to(folder) for folder in shown):
        return []
    return [str(root / name) for name in OWN_PACKAGES if (root / name).is_dir()]


READ_ONLY_IN_PROC = ("sys", "fs", "driver", "acpi", "scsi")
HIDDEN_IN_PROC = (
    *("sysrq-trigger", "kcore", "kmsg", "keys", "key-users", "mtrr", "timer_list", "sched_debug", "latency_stats"),
    *("kallsyms", "modules", "slabinfo", "vmallocinfo", "kpagecount", "kpageflags", "kpagecgroup", "pagetypeinfo"),
    *("iomem", "ioports", "swaps"),
)


def _covered_kernel_files() -> list[str]:
    """Arguments that put /proc/sys and its like out of reach.

    An engine that runs as root is root's identity inside too, under another number and without a capability: as their
    owner it could write kernel settings, and one of them (core_pattern) names a program that the machine then runs.
    """
    argv: list[str] = []
    for name in READ_ONLY_IN_PROC:
        if Path(f"/proc/{name}").is_dir():
            argv += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    for name in HIDDEN_IN_PROC:
        if Path(f"/proc/{name}").is_file():
            argv += ["--ro-bind", "/dev/null", f"/proc/{name}"]
    return argv


def environment_for_popen(level: SandboxLevel, cage: Cage) -> Mapping[str, str]:
    """What to pass as `env`: bubblewrap clears and sets its own; without it the scrubbed one applies directly."""
    return dict(cage.environment)
