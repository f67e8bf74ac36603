"""Cores, noise, disk, folders, GPU."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from workbench.examining.finding import Examined, fail, ok, ran, warn
from workbench.places import Places, private_folder
from workbench_engine.host import cpu_name, meminfo

LEAST_DISK = 1 << 30
LEAST_MEMORY = 2 << 30


def cores() -> list[Examined]:
    count = len(os.sched_getaffinity(0))
    name = cpu_name(_read("/proc/cpuinfo")) or "CPU"
    if count < 2:
        remedy = "give it two: with one, builds and the screen disturb the clock"
        return [warn("cores", f"1 of {name}", remedy)]
    return [ok("cores", f"{count} of {name}")]


def noise() -> list[Examined]:
    """What disturbs timings: other load and a clock that changes."""
    found = []
    count = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    said = f"{load:.1f} on {count} cores"
    busy = warn("load", said, "end other work before measuring; verdicts near the floor become AMBIGUOUS")
    found.append(busy if load > 0.5 * count else ok("load", said))
    governor = _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    if not governor:
        found.append(ok("governor", "not told (virtual machine); pairs are interleaved against it"))
    elif governor == "performance":
        found.append(ok("governor", governor))
    else:
        found.append(warn("governor", governor, "sudo cpupower frequency-set -g performance"))
    return found


def memory() -> list[Examined]:
    facts = meminfo(_read("/proc/meminfo"))
    free, total = facts.get("MemAvailable", 0), facts.get("MemTotal", 0)
    said = f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB available"
    if 0 < free < LEAST_MEMORY:
        return [warn("memory", said, "free some: reference, workers and builds need about 2 GiB")]
    return [ok("memory", said)]


def folders(where: Places) -> list[Examined]:
    found = []
    for name in ("sessions", "cache", "state"):
        path: Path = getattr(where, name)
        try:
            private_folder(path)
            with tempfile.TemporaryFile(dir=path) as file:
                file.write(b"x")
        except OSError as error:
            remedy = "make it writable, or set WORKBENCH_HOME to another folder"
            found.append(fail(f"{name} folder", f"{path}: {error.strerror or error}", remedy))
            continue
        free = shutil.disk_usage(path).free
        said = f"{path}, {free / 2**30:.1f} GiB free"
        full = warn(f"{name} folder", said, "free some space: a run stops when the disk is full")
        found.append(full if free < LEAST_DISK else ok(f"{name} folder", said))
    return found


def gpu() -> list[Examined]:
    """NVML through nvidia-ml-py, every call guarded. No GPU is fine: the cpu backend needs none."""
    found = []
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            for index in range(pynvml.nvmlDeviceGetCount()):
                name = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(index))
                found.append(ok(f"gpu {index}", name if isinstance(name, str) else name.decode()))
        finally:
            pynvml.nvmlShutdown()
    except Exception as error:
        # NVML's errors are made at run time and a driver can fail in any way; none of them matters to the CPU.
        return [ok("gpu", f"none found ({error}); tasks run on the cpu backend")]
    return found or [ok("gpu", "none; tasks run on the cpu backend")]


def cuda_compiler() -> list[Examined]:
    path = shutil.which("nvcc")
    if path is None:
        return [ok("nvcc", "none; the cpu backend does not need it")]
    status, said = ran([path, "--version"])
    release = next((line for line in said.splitlines() if "release" in line), said[:80])
    if status:
        return [warn("nvcc", f"{path} does not run: {release}", "repair or remove the CUDA toolkit")]
    return [ok("nvcc", release.strip())]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
