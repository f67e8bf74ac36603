"""The `cpu` backend: C++ through g++, in a cage, cached by content.

`extern "C"` and raw pointers, no torch headers: a build costs a fraction of a second. Candidates choose among the flags
below for compiling; linking is always plain, because a shared object linked with -ffast-math switches denormals off
for the whole process that loads it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

from msgspec import Struct

from workbench_engine.backends.caged_compile import compile_caged
from workbench_engine.sandbox.cage import SCRATCH, Cage
from workbench_engine.sandbox.level import SandboxLevel
from workbench_engine.sandbox.limits import COMPILE
from workbench_engine.sandbox.process import printable

BASE_FLAGS = ("-std=c++17", "-fPIC", "-march=native", "-fopenmp", "-w")
DEFAULT_FLAGS = ("-O3",)
ALLOWED_FLAGS = re.compile(
    r"-O[0-3s]|-Ofast|-ffast-math|-ffp-contract=(fast|on|off)|-mprefer-vector-width=(128|256|512|none)"
    r"|-f(no-)?(math-errno|trapping-math|signed-zeros|associative-math|reciprocal-math|finite-math-only"
    r"|unsafe-math-optimizations|rounding-math|unroll-loops|unroll-all-loops|tree-vectorize|tree-slp-vectorize"
    r"|strict-aliasing|peel-loops|split-loops|tree-loop-distribution|tree-loop-distribute-patterns|ipa-pta"
    r"|inline-functions|prefetch-loop-arrays|omit-frame-pointer|graphite-identity|loop-interchange"
    r"|loop-nest-optimize|gcse-las|gcse-sm|schedule-insns|modulo-sched|version-loops-for-strides|vect-cost-model)"
    r"|-fvect-cost-model=(unlimited|dynamic|cheap)|-fsimd-cost-model=(unlimited|dynamic|cheap)"
    r"|--param=[a-z-]+=[0-9]+|-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?"
)
LOG_KEPT = 8_000
ABI = "kernel_run/1"


class CompilerMissing(Exception):
    """No usable g++. `str()` is one line with the remedy."""


class Build(Struct, frozen=True):
    """`path` is the shared object; `log` what the compiler said, capped; `feedback` fit for the next prompt."""

    ok: bool
    path: str
    sha256: str
    seconds: float
    cached: bool
    log: str = ""
    feedback: str = ""


def find_compiler() -> tuple[str, str]:
    """(path, version line) of g++. Raises CompilerMissing."""
    path = shutil.which("g++")
    if path is None:
        raise CompilerMissing("compiler: g++ is not installed; remedy: apt install g++ (or dnf install gcc-c++)")
    import subprocess

    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilerMissing(f"compiler: {path} does not run ({error}); remedy: reinstall g++") from error
    return path, (done.stdout.splitlines() or ["unknown"])[0]


def flags_in(text: str) -> tuple[tuple[str, ...], list[str]]:
    """(flags asked for in the first line `// flags: ...`, those not allowed)."""
    first = text.split("\n", 1)[0]
    if not first.startswith("// flags:"):
        return DEFAULT_FLAGS, []
    asked = tuple(first.removeprefix("// flags:").split())
    return asked, [f for f in asked if not ALLOWED_FLAGS.fullmatch(f)]


class CpuBuilder:
    """Builds kernels for this machine's CPU. The cache is written here only, after the compile worker has ended."""

    def __init__(self, level: SandboxLevel, cache: Path, deadline_s: float = 60.0) -> None:
        """Raises CompilerMissing."""
        self._level = level
        self._cache = cache
        self._deadline_s = deadline_s
        self._compiler, self.version = find_compiler()
        self._machine = _machine_id()
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)

    def key(self, text: str, flags: tuple[str, ...]) -> str:
        """Content address of a build: source, flags, compiler, processor, ABI."""
        parts = "\0".join((text, " ".join(flags), self.version, self._machine, ABI))
        return hashlib.sha256(parts.encode()).hexdigest()

    async def build(self, text: str, cores: list[int]) -> Build:
        """Compile one kernel file on one of `cores`. A failure is an answer, not an exception; failures are cached."""
        flags, bad = flags_in(text)
        if bad:
            feedback = f"flag not allowed: {' '.join(bad)}"
            return Build(False, "", "", 0.0, False, feedback, feedback)
        if "kernel_run" not in text:
            feedback = 'the file defines no kernel_run: extern "C" void kernel_run(const void* const* in, ...)'
            return Build(False, "", "", 0.0, False, feedback, feedback)
        key = self.key(text, flags)
        good = self._cache / f"{key}.so"
        bad_log = self._cache / f"{key}.log"
        if good.exists():
            return Build(True, str(good), key, 0.0, True)
        if bad_log.exists():
            log = bad_log.read_text(errors="replace")
            return Build(False, "", key, 0.0, True, log, _feedback(log))
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="workbench-build-") as folder:
            job = Path(folder) / "job"
            job.mkdir()
            (job / "kernel.cpp").write_text(text)
            made = Path(folder) / "kernel.so"
            code, log, late = await self._compile(job, made, flags, cores)
            seconds = time.monotonic() - start
            if code == 0 and made.stat().st_size:
                partial = self._cache / f".{key}.{os.getpid()}"
                shutil.copyfile(made, partial)
                partial.replace(good)
                return Build(True, str(good), key, seconds, False, log)
        if late:
            text = f"the compiler took more than {self._deadline_s:.0f} s: killed"
            return Build(False, "", key, seconds, False, text, text)
        bad_log.write_text(log)
        return Build(False, "", key, seconds, False, log, _feedback(log))

    async def _compile(self, job: Path, made: Path, flags: tuple[str, ...], cores: list[int]) -> tuple[int, str, bool]:
        """(exit status, log, whether it was killed). The cage can write to its scratch; the result leaves by stdout."""
        caged = self._level.bwrap is not None
        source, scratch = ("/job", SCRATCH) if caged else (str(job), str(job))
        compiling = " ".join(["g++", *BASE_FLAGS, *flags, "-c", "kernel.cpp", "-o", f"{scratch}/kernel.o"])
        linking = f"g++ -shared -fopenmp {scratch}/kernel.o -o {scratch}/kernel.so"
        script = f"cd {source} && {compiling} >&2 && {linking} >&2 && cat {scratch}/kernel.so"
        cage = Cage(
            limits=COMPILE,
            mounts=((str(job), "/job"),),
            environment={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C", "TMPDIR": scratch},
        )
        log_file = made.with_suffix(".log")
        code, late = await compile_caged(
            self._level,
            cage,
            ["/bin/sh", "-c", script],
            made=made,
            log=log_file,
            cores=cores,
            deadline_s=self._deadline_s,
        )
        with log_file.open("rb") as text:
            log = text.read(LOG_KEPT).decode("utf-8", "replace")
        return code, printable(log.replace("/job/", "").replace(f"{job}/", "")), late


def _feedback(log: str) -> str:
    """The lines of a compiler log that say what is wrong."""
    lines = [line for line in log.splitlines() if "error" in line or "undefined" in line]
    return "does not compile: " + ("; ".join(lines[:4]) if lines else log[:400])


def _machine_id() -> str:
    """Processor model and features: -march=native code must not travel through a shared cache folder."""
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        return os.uname().machine
    wanted = [line for line in info.splitlines() if line.startswith(("model name", "flags"))]
    return hashlib.sha256("\n".join(wanted[:2]).encode()).hexdigest()[:16]
