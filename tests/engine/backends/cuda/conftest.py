"""A builder with each compiler this machine has; where it has none the reason is printed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench_engine.backends.cpu import CompilerMissing
from workbench_engine.backends.cuda.builder import CudaBuild, CudaBuilder
from workbench_engine.backends.cuda.toolchain import Toolchain, find_nvcc, find_nvrtc
from workbench_engine.sandbox.level import probe

Builds = Callable[..., CudaBuild]


def found(find: Callable[[], Toolchain]) -> Toolchain:
    """Skips the test, with the reason, where the compiler is not to be had."""
    try:
        return find()
    except CompilerMissing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def nvrtc() -> Toolchain:
    return found(find_nvrtc)


@pytest.fixture(scope="session")
def nvcc() -> Toolchain:
    return found(find_nvcc)


@pytest.fixture
def build(nvrtc: Toolchain, tmp_path: Path) -> Builds:
    """Builds a text with NVRTC, in a cage, for `arch`."""

    def built(text: str, deadline_s: float = 60.0, arch: str = "sm_90a", cache: str = "cache") -> CudaBuild:
        builder = CudaBuilder(probe(), tmp_path / cache, arch=arch, deadline_s=deadline_s, nvrtc=nvrtc)
        return asyncio.run(builder.build(text, sorted(os.sched_getaffinity(0))))

    return built


@pytest.fixture
def build_nvcc(nvcc: Toolchain, tmp_path: Path) -> Builds:
    """The same with nvcc."""

    def built(text: str, deadline_s: float = 60.0) -> CudaBuild:
        builder = CudaBuilder(probe(), tmp_path / "nvcc", arch="sm_90a", deadline_s=deadline_s, nvcc=nvcc)
        return asyncio.run(builder.build(text, sorted(os.sched_getaffinity(0))))

    return built
