"""Which CUDA compilers this machine has, and the headers that go with them.

NVRTC is looked for among the environment's `nvidia-*` wheels, then under CUDA_HOME, then where systems put it; nvcc
likewise. Each is asked for its version in a process of its own: a library of 140 MB must not stay in the engine.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from workbench_engine.backends.cpu import CompilerMissing

WORKERS = Path(__file__).parent / "workers"
REMEDY = "pip install 'kernel-workbench[cuda13]' (or [cuda12], for a driver older than 580)"
PROBE_S = 20.0
_HEADERS = ("cuda_fp16.h", "crt/host_defines.h")


class Toolchain(Struct, frozen=True):
    """`path` is libnvrtc or nvcc. `release` is the CUDA version, (13, 0). `includes` are folders of CUDA's headers,
    none for nvcc, which knows its own; `architectures` what it compiles for (90 for 9.0), () when it does not tell."""

    compiler: Literal["nvrtc", "nvcc"]
    path: str
    release: tuple[int, int]
    includes: tuple[str, ...] = ()
    architectures: tuple[int, ...] = ()
    header_release: str = ""

    @property
    def version(self) -> str:
        """For people and for the address of a build: "NVRTC 13.0"."""
        name = "NVRTC" if self.compiler == "nvrtc" else "nvcc"
        return f"{name} {self.release[0]}.{self.release[1]}"

    @property
    def has_headers(self) -> bool:
        """Whether `#include <cuda_fp16.h>` works."""
        return self.compiler == "nvcc" or all(any((Path(f) / h).is_file() for f in self.includes) for h in _HEADERS)

    @property
    def shown(self) -> tuple[str, ...]:
        """Folders that a cage must show for it to run."""
        root = Path(os.path.realpath(self.path)).parent
        return (str(root if self.compiler == "nvrtc" else root.parent), *self.includes)


def find_nvrtc(newest_major: int = 99) -> Toolchain:
    """The first NVRTC that loads and is not newer than `newest_major`, the driver's. Raises CompilerMissing."""
    said = []
    for path in _nvrtc_libraries():
        if _major(path) > newest_major:
            said.append(f"{path} is for a newer driver")
            continue
        try:
            told = json.loads(_asked([sys.executable, "-I", "-S", str(WORKERS / "nvrtc.py"), str(path)]))
        except (ValueError, OSError, subprocess.SubprocessError) as error:
            said.append(f"{path} does not load ({_last_line(error)})")
            continue
        major, minor = (int(part) for part in told["version"])
        includes = _includes(path, major)
        release = header_release(includes)
        return Toolchain("nvrtc", str(path), (major, minor), includes, tuple(told["architectures"]), release)
    why = "; ".join(said) or "no libnvrtc in this environment, under CUDA_HOME or in the system"
    raise CompilerMissing(f"compiler: NVRTC is not installed ({why}); remedy: {REMEDY}")


def find_nvcc() -> Toolchain:
    """nvcc under CUDA_HOME, on PATH, or of a wheel. Raises CompilerMissing."""
    named = [f"{root}/bin/nvcc" for root in _cuda_homes()]
    wheels = [str(folder / "bin/nvcc") for root in _wheel_roots() for folder in sorted(root.glob("*"))]
    on_path = shutil.which("nvcc")
    for path in (*named, *([on_path] if on_path else []), "/usr/local/cuda/bin/nvcc", *wheels):
        if not os.access(path, os.X_OK):
            continue
        try:
            told = _asked([path, "--version"])
        except (OSError, subprocess.SubprocessError):
            continue
        if match := re.search(r"release (\d+)\.(\d+)", told):
            return Toolchain("nvcc", path, (int(match[1]), int(match[2])))
    raise CompilerMissing(
        "compiler: nvcc is not installed; remedy: install the CUDA toolkit (or set CUDA_HOME), "
        "or leave out `// compiler: nvcc` and let NVRTC compile"
    )


def header_release(includes: tuple[str, ...]) -> str:
    """CUDA_VERSION as the headers say it, "" without them."""
    for folder in includes:
        for name in ("cuda.h", "cuda_runtime_api.h"):
            try:
                text = (Path(folder) / name).read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            if match := re.search(r"#define CUDA(?:RT)?_VERSION\s+(\d+)", text):
                return match[1]
    return ""


def _nvrtc_libraries() -> Iterator[Path]:
    for root in _wheel_roots():
        found = [path for path in root.glob("*/lib/libnvrtc.so*") if ".alt." not in path.name]
        yield from sorted(found, key=lambda path: (_major(path), str(path)), reverse=True)
    for home in (*_cuda_homes(), "/usr/local/cuda"):
        for folder in ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"):
            yield from sorted((Path(home) / folder).glob("libnvrtc.so*"))[:1]
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"):
        yield from sorted(Path(folder).glob("libnvrtc.so*"))[:1]


def _major(library: Path) -> int:
    """The CUDA version in a library's name, 0 when there is none."""
    match = re.search(r"\.so\.(\d+)", library.name)
    return int(match[1]) if match else 0


def _wheel_roots() -> list[Path]:
    """Where the `nvidia-*` wheels of this interpreter put their files."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    return [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []


def _cuda_homes() -> list[str]:
    return [home for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name, ""))]


def _includes(library: Path, major: int) -> tuple[str, ...]:
    """Folders of headers of the same CUDA major, nearest to the library first; only as many as are needed."""
    near = [Path(os.path.realpath(library)).parents[1] / "include", library.parents[1] / "include"]
    # CUDA 12's wheels have a folder for each component.
    for root in _wheel_roots():
        near += [root / f"cu{major}/include", *(root / f"{name}/include" for name in ("cuda_runtime", "cuda_nvcc"))]
        near += [root / "cuda_cccl/include"]
    near += [Path(home) / "include" for home in (*_cuda_homes(), "/usr/local/cuda")]
    chosen: list[Path] = []
    lacking = set((*_HEADERS, "cuda/std/type_traits"))
    for folder in near:
        for place in (folder, folder / "cccl"):
            offered = {name for name in lacking if (place / name).is_file()}
            release = header_release((str(folder),))
            if offered and (not release or int(release) // 1000 == major):
                chosen.append(place)
                lacking -= offered
    return tuple(os.path.realpath(place) for place in chosen)


def _asked(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_S, check=True)
    return done.stdout


def _last_line(error: Exception) -> str:
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    return (str(said).strip().splitlines() or ["no reason given"])[-1][:200]
