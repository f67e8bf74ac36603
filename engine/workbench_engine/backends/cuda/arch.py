"""Compute capabilities: what is compiled for, and what a block may take there."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

DEFAULT = "sm_90a"
"""Where no card is seen: Hopper with its own instructions (wgmma, TMA)."""

ARCH = re.compile(r"sm_([0-9]{2,3})([af]?)")

_SHARED_KIB = {75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 101: 227, 103: 227, 110: 227}
_SHARED_KIB |= {120: 99, 121: 99}


class Capacity(Struct, frozen=True):
    """Most that one launch may ask for. `shared_bytes` a block, static and dynamic together; `cluster` in blocks."""

    shared_bytes: int
    threads: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65_535, 65_535)
    cluster: int = 0


def capacity_of(arch: str) -> Capacity:
    """What `arch` ("sm_90a") offers; for one that is not in the table what every card since Turing has."""
    match = ARCH.fullmatch(arch)
    number = int(match[1]) if match else 75
    return Capacity(_SHARED_KIB.get(number, 64) * 1024, cluster=16 if number >= 90 else 0)


def arch_of(major: int, minor: int) -> str:
    """The name for a card's compute capability; from 9.0 on with the instructions of that generation alone ("a")."""
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


class Card(Struct, frozen=True):
    """The first GPU that NVML sees. `driver_cuda` is the newest CUDA version the driver runs, e.g. (13, 0)."""

    name: str
    arch: str
    driver_cuda: tuple[int, int]


def card() -> Card | None:
    """The first GPU of this machine; None where NVML is missing, fails or sees none. Never raises."""
    try:
        nvml: Any = __import__("pynvml")
        nvml.nvmlInit()
        try:
            if not nvml.nvmlDeviceGetCount():
                return None
            handle = nvml.nvmlDeviceGetHandleByIndex(0)
            major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
            name = nvml.nvmlDeviceGetName(handle)
            version = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
        finally:
            nvml.nvmlShutdown()
    except Exception:
        # NVML's errors are made at run time, and a broken driver can fail in any way: all of them mean "no GPU".
        return None
    shown = name if isinstance(name, str) else name.decode()
    return Card(shown, arch_of(major, minor), (version // 1000, version % 1000 // 10))
