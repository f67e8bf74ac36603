"""The machine a run happened on: numbers without it mean nothing."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from workbench_sessions.events import HostCard


def host_card(cores: int = 0) -> HostCard:
    """This machine, without importing torch. What it does not tell is "" or 0.

    `cores`: those the run may use; 0 = those of this process (an engine that has left the timed core has fewer).
    """
    return HostCard(
        hostname=socket.gethostname(),
        cpu=cpu_name(_read("/proc/cpuinfo")) or platform.processor(),
        cores=cores or len(os.sched_getaffinity(0)),
        memory_bytes=meminfo(_read("/proc/meminfo")).get("MemTotal", 0),
        os=f"{_pretty_name(_read('/etc/os-release'))} (Linux {platform.release()})",
        python=platform.python_version(),
        torch=installed("torch"),
        compiler=_compiler(),
    )


def installed(distribution: str) -> str:
    """The installed version of a distribution, "" when there is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def cpu_name(cpuinfo: str) -> str:
    """Model name in the text of /proc/cpuinfo; "" when it names none (many ARM machines)."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return ""


def meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo in bytes."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        parts = value.split()
        if parts and parts[0].isdigit():
            found[key.strip()] = int(parts[0]) * (1024 if parts[1:] == ["kB"] else 1)
    return found


def _pretty_name(os_release: str) -> str:
    for line in os_release.splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.system()


def _compiler() -> str:
    path = shutil.which("g++")
    if path is None:
        return ""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.splitlines()[0] if said else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
