"""Builds CUDA candidates: one `.cu` file to one cubin, in a cage, cached by content. Needs no GPU and no driver.

NVRTC first, because a small kernel takes it 0.05 s; nvcc where NVRTC is missing or the file says `// compiler: nvcc`.
The result is machine code for one architecture, not PTX: a driver of the same CUDA major runs it whatever its minor.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import struct
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from workbench_engine.backends.caged_compile import compile_caged
from workbench_engine.backends.cpu import LOG_KEPT, CompilerMissing
from workbench_engine.backends.cuda import toolchain
from workbench_engine.backends.cuda.arch import ARCH, DEFAULT, card
from workbench_engine.backends.cuda.facts import KernelFacts, kernel_facts, without_chatter
from workbench_engine.backends.cuda.flags import spelled
from workbench_engine.backends.cuda.header import CudaFile, HeaderError, read_file
from workbench_engine.backends.cuda.toolchain import Toolchain
from workbench_engine.sandbox.cage import ENGINE_ROOT, SCRATCH, Cage, python_environment
from workbench_engine.sandbox.level import SandboxLevel
from workbench_engine.sandbox.limits import COMPILE
from workbench_engine.sandbox.process import printable

ABI = "cuda/1"
MOST_HEAD = 1 << 20
REPORT = "--ptxas-options=-v"


class CudaBuild(Struct, frozen=True):
    """`path` is the cubin; `log` what the compiler said, capped; `feedback` fit for the next prompt.

    `kernels`: a KernelFacts for each kernel that is launched, with the name it has in the binary.
    """

    ok: bool
    path: str
    sha256: str
    seconds: float
    cached: bool
    log: str = ""
    feedback: str = ""
    compiler: str = ""
    arch: str = ""
    kernels: tuple[KernelFacts, ...] = ()


class _Head(Struct, frozen=True):
    """The first part of the compile worker's answer."""

    ok: bool
    log: str
    lowered: dict[str, str]


class _Kept(Struct, frozen=True):
    """What the cache holds of a build beside the cubin."""

    ok: bool
    log: str
    kernels: tuple[KernelFacts, ...] = ()


class CudaBuilder:
    """Builds for one architecture. The cache is written here only, after the compile worker has ended."""

    def __init__(
        self,
        level: SandboxLevel,
        cache: Path,
        *,
        arch: str = "",
        deadline_s: float = 60.0,
        nvrtc: Toolchain | None = None,
        nvcc: Toolchain | None = None,
    ) -> None:
        """`arch`: as "sm_90a"; "" is the card's, or sm_90a where none is seen. The compilers are looked for unless
        one is given. Raises CompilerMissing when there is neither, ValueError for an `arch` that is no architecture."""
        self._level = level
        self._cache = cache
        self._deadline_s = deadline_s
        seen = card()
        self.arch = arch or (seen.arch if seen else DEFAULT)
        if not ARCH.fullmatch(self.arch):
            raise ValueError(f"no architecture is called {self.arch!r}; write it as sm_90a")
        self._missing: dict[str, str] = {}
        if nvrtc is None and nvcc is None:
            try:
                nvrtc = toolchain.find_nvrtc(seen.driver_cuda[0] if seen else 99)
            except CompilerMissing as error:
                self._missing["nvrtc"] = str(error)
            try:
                nvcc = toolchain.find_nvcc()
            except CompilerMissing as error:
                self._missing["nvcc"] = str(error)
        if nvrtc is None and nvcc is None:
            raise CompilerMissing(self._missing["nvrtc"])
        self.compilers = {one.compiler: one for one in (nvrtc, nvcc) if one is not None}
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)

    def key(self, file: CudaFile, compiler: Toolchain) -> str:
        """Content address of a build: source, options, kernels, compiler, headers, ABI."""
        parts = (file.text, *spelled(file.flags, self.arch), *file.spec.kernels, compiler.version)
        return hashlib.sha256("\0".join((*parts, compiler.header_release, ABI)).encode()).hexdigest()

    async def build(self, text: str, cores: list[int]) -> CudaBuild:
        """Compile one file on one of `cores`. A failure is an answer, not an exception; failures are cached."""
        try:
            file = read_file(text)
        except HeaderError as error:
            return CudaBuild(False, "", "", 0.0, False, str(error), str(error), arch=self.arch)
        chosen = file.compiler or ("nvrtc" if "nvrtc" in self.compilers else "nvcc")
        if chosen not in self.compilers:
            said = self._missing.get(chosen, f"compiler: {chosen} is not in use here; remedy: leave the choice out")
            return CudaBuild(False, "", "", 0.0, False, said, said, arch=self.arch)
        compiler = self.compilers[chosen]
        key = self.key(file, compiler)
        if (kept := self._remembered(key)) is not None:
            return self._answer(kept, key, 0.0, True, compiler)
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="workbench-build-") as folder:
            made = Path(folder) / "answer"
            code, log, late = await self._compile(Path(folder), made, file, compiler, cores)
            seconds = time.monotonic() - start
            if late:
                said = f"the compiler took more than {self._deadline_s:g} s: killed"
                return CudaBuild(False, "", key, seconds, False, said, said, compiler.version, self.arch)
            head, cubin = _opened(made) if code == 0 else (None, b"")
            if head is None:
                # The compiler itself ended (a crash, no memory): no fact about the source, so it is not kept.
                said = f"the compiler ended with status {code}: {_last_line(log)}"
                return CudaBuild(False, "", key, seconds, False, log or said, said, compiler.version, self.arch)
        told = printable(head.log.replace(f"{SCRATCH}/", ""))
        # A name leaves the cage as text that nobody has looked at yet.
        lowered = {name: printable(head.lowered.get(name, "")) for name in file.spec.kernels}
        kernels = kernel_facts(told, lowered) if head.ok and cubin else ()
        kept = _Kept(bool(kernels), without_chatter(told)[:LOG_KEPT], kernels)
        self._keep(key, kept, cubin)
        return self._answer(kept, key, seconds, False, compiler)

    def _answer(self, kept: _Kept, key: str, seconds: float, cached: bool, compiler: Toolchain) -> CudaBuild:
        path = str(self._cache / f"{key}.cubin") if kept.ok else ""
        feedback = "" if kept.ok else _feedback(kept.log, compiler)
        return CudaBuild(
            kept.ok, path, key, seconds, cached, kept.log, feedback, compiler.version, self.arch, kept.kernels
        )

    def _remembered(self, key: str) -> _Kept | None:
        with suppress(OSError, msgspec.DecodeError):
            kept = msgspec.json.decode((self._cache / f"{key}.json").read_bytes(), type=_Kept)
            if not kept.ok or (self._cache / f"{key}.cubin").is_file():
                return kept
        return None

    def _keep(self, key: str, kept: _Kept, cubin: bytes) -> None:
        """The cubin first: what the JSON tells of must be there."""
        parts = [(f"{key}.json", msgspec.json.encode(kept))]
        if kept.ok:
            parts.insert(0, (f"{key}.cubin", cubin))
        for name, data in parts:
            partial = self._cache / f".{name}.{os.getpid()}"
            partial.write_bytes(data)
            partial.replace(self._cache / name)

    async def _compile(
        self, folder: Path, made: Path, file: CudaFile, compiler: Toolchain, cores: list[int]
    ) -> tuple[int, str, bool]:
        """(exit status, stderr, whether it was killed)."""
        caged = self._level.bwrap is not None
        job = folder / "job"
        scratch = folder / "scratch"
        job.mkdir()
        scratch.mkdir()
        includes = [f"-I{path}" for path in compiler.includes]
        request: dict[str, Any] = {
            "compiler": compiler.compiler,
            "compiler_path": compiler.path,
            "options": [*spelled(file.flags, self.arch), REPORT, *includes],
            "expressions": list(file.spec.kernels),
        }
        (job / "request.json").write_bytes(msgspec.json.encode(request))
        (job / "kernel.cu").write_text(file.text)
        cage = Cage(
            limits=COMPILE,
            readonly=_readable(compiler),
            mounts=((str(job), "/job"), (str(toolchain.WORKERS), f"{ENGINE_ROOT}/compiling")),
            environment={"PATH": _path(compiler), "LANG": "C", "TMPDIR": SCRATCH if caged else str(scratch)},
        )
        workers = f"{ENGINE_ROOT}/compiling" if caged else str(toolchain.WORKERS)
        places = ("/job", SCRATCH) if caged else (str(job), str(scratch))
        log_file = folder / "log"
        code, late = await compile_caged(
            self._level,
            cage,
            [sys.executable, "-I", "-S", f"{workers}/compiling.py", *places],
            made=made,
            log=log_file,
            cores=cores,
            deadline_s=self._deadline_s,
        )
        with log_file.open("rb") as said:
            log = said.read(LOG_KEPT).decode("utf-8", "replace")
        return code, printable(log), late


def _opened(made: Path) -> tuple[_Head | None, bytes]:
    """The worker's answer, checked: it comes out of a cage in which untrusted source was compiled."""
    try:
        data = made.read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        if length > MOST_HEAD:
            return None, b""
        head = msgspec.json.decode(data[8 : 8 + length], type=_Head)
    except (struct.error, msgspec.DecodeError, OSError, UnicodeDecodeError):
        return None, b""
    return head, data[8 + length :]


def _readable(compiler: Toolchain) -> tuple[str, ...]:
    """The interpreter, the compiler and its headers; never a folder that holds the home folder."""
    shown = [
        folder
        for folder in compiler.shown
        if not Path(folder).is_relative_to("/usr") and not Path.home().is_relative_to(folder)
    ]
    return tuple(dict.fromkeys((*python_environment(), *shown)))


def _path(compiler: Toolchain) -> str:
    own = [str(Path(compiler.path).parent)] if compiler.compiler == "nvcc" else []
    host = shutil.which("g++")
    if host:
        own.append(str(Path(host).parent))
    return ":".join((*own, "/usr/local/bin", "/usr/bin", "/bin"))


def _feedback(log: str, compiler: Toolchain) -> str:
    """The lines of a compiler log that say what is wrong, and the remedy where it is not the source's fault."""
    if unknown := re.findall(r'Input name expression was: "\s*(.*?)\s*"', log):
        return f"does not compile: a launch names {', '.join(unknown)}, which is no kernel of this file; {_errors(log)}"
    said = f"does not compile: {_errors(log)}"
    if "could not open source file" in log or "cannot open source file" in log:
        if not compiler.has_headers:
            said += f"; CUDA's headers are not installed here, remedy: {toolchain.REMEDY}"
        else:
            said += "; CUDA's own headers (cuda_fp16.h, cuda/std/…) are there, the host's are not with NVRTC"
    return said


def _errors(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if "error:" in line]
    return "; ".join(lines[:4]) if lines else log.strip()[:400] or "no reason given"


def _last_line(log: str) -> str:
    return (log.strip().splitlines() or ["it said nothing"])[-1][:300]
