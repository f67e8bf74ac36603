"""Python, packages, compiler, sandbox."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from workbench.examining.finding import Examined, fail, ok, ran, warn
from workbench_engine.host import installed
from workbench_engine.sandbox.cage import base_environment
from workbench_engine.sandbox.level import SandboxUnavailable, probe

LEAST_PYTHON = (3, 11)

PROGRAM = """
#include <omp.h>
#include <cstdio>
int main() {
  int threads = 0;
  #pragma omp parallel reduction(+ : threads)
  threads += 1;
  std::printf("%d\\n", threads);
}
"""

BLOCKS = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
heap = [line.split()[0] for line in open("/proc/self/maps") if "[heap]" in line]
address = libc.malloc(64 << 20)
low, high = (int(x, 16) for x in next(l.split()[0] for l in open("/proc/self/maps") if "[heap]" in l).split("-"))
print("heap" if low <= address < high else "mmap")
"""


def python() -> list[Examined]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < LEAST_PYTHON:
        return [fail("python", version, "install Python 3.11 or newer")]
    return [ok("python", version)]


def packages() -> list[Examined]:
    """Versions come from the packages' metadata: nothing is imported."""
    found = []
    for name, why in (
        ("textual", "the screens"),
        ("torch", "the reference and the policies"),
        ("msgspec", "all records"),
    ):
        version = installed(name)
        missing = fail(name, f"not installed; {why} need it", "install the package again with its dependencies")
        found.append(ok(name, version) if version else missing)
    return found


def torch_runs() -> list[Examined]:
    """torch itself is asked in a child process: importing it takes seconds."""
    program = "import torch; print(torch.ones(8).sum().item(), torch.cuda.is_available(), torch.version.cuda or 'cpu')"
    status, said = ran([sys.executable, "-c", program], timeout_s=120.0)
    last = said.splitlines()[-1] if said else ""
    if status or not last.startswith("8.0"):
        return [fail("torch runs", last or f"status {status}", "reinstall torch")]
    cuda, build = last.split()[1:3]
    return [ok("torch runs", f"build for {build}, {'sees a GPU' if cuda == 'True' else 'no GPU for it'}")]


def compiler() -> list[Examined]:
    path = shutil.which("g++")
    if path is None:
        return [fail("g++", "not found", "install g++ (apt install g++)")]
    _, said = ran([path, "--version"])
    version = said.splitlines()[0] if said else path
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "probe")
        status, said = ran([path, "-x", "c++", "-", "-O3", "-march=native", "-fopenmp", "-o", out], stdin=PROGRAM)
        if status:
            return [fail("g++", version, f"-march=native -fopenmp does not compile: {said.splitlines()[0][:200]}")]
        status, said = ran([out], env={**os.environ, "OMP_NUM_THREADS": "2"})
    if status or said != "2":
        return [fail("g++", version, f"an OpenMP program does not run ({said or status}); install libgomp")]
    found = [ok("g++", f"{version}; -march=native and OpenMP work")]
    match = re.search(r"\b(\d+)\.\d+", version)
    if match and int(match[1]) < 9:
        found.append(warn("g++ version", match[0], "use g++ 9 or newer for the vector code of today's CPUs"))
    return found


def sandbox() -> list[Examined]:
    try:
        level = probe()
    except SandboxUnavailable as error:
        what, _, remedy = str(error).partition("; remedy: ")
        return [fail("sandbox", what.removeprefix("sandbox: "), remedy)]
    said = f"{level.name}, {level.version} at {level.bwrap}"
    if not level.cgroup:
        what = f"{said}; a candidate's processes are capped one by one, not together"
        return [warn("sandbox", what, "run under `systemd-run --user --scope -p Delegate=yes`, or as root")]
    return [ok("sandbox", said)]


def malloc() -> list[Examined]:
    """Whether the settings that workers get keep a large block in the heap (glibc only)."""
    status, said = ran([sys.executable, "-c", BLOCKS], env=base_environment())
    if status == 0 and said == "heap":
        return [ok("malloc", "large blocks stay in the heap, as the settings ask")]
    remedy = "timings carry page faults of fresh memory on both sides; use a glibc Python without another allocator"
    return [warn("malloc", "the settings for large blocks have no effect here", remedy)]
