"""What this core can do at best, measured: bytes a second for traffic of a task's size, and flops a second.

Measured with numpy on the station's own core just before a task is judged, so that roofline fractions refer to this
machine and not to a data sheet; in processor time, so that other load does not lower the ceiling and turn an honest
kernel into an impossible one.
"""

from __future__ import annotations

import time

import numpy as np
from msgspec import Struct


class Ceilings(Struct, frozen=True):
    """`bandwidth` in bytes/s (read plus written), `flops_rate` in fp32 flop/s, of one core; None = not measured."""

    bandwidth: float | None
    flops_rate: float | None

    @classmethod
    def measure(cls, bytes_moved: int | None, flops: int | None) -> Ceilings:
        """Best of several copies of `bytes_moved` bytes in all, and of several 384³ fp32 products."""
        bandwidth = _copy_rate(min(max(bytes_moved, 1 << 16), 256 << 20)) if bytes_moved else None
        return cls(bandwidth, _product_rate() if flops else None)

    def raised(self, other: Ceilings) -> Ceilings:
        """The higher of two measurements, each part by itself."""
        return Ceilings(_higher(self.bandwidth, other.bandwidth), _higher(self.flops_rate, other.flops_rate))


def _higher(a: float | None, b: float | None) -> float | None:
    return max(a, b) if a is not None and b is not None else a if b is None else b


def _copy_rate(nbytes: int) -> float:
    source = np.ones(nbytes // 8, dtype=np.float32)
    target = np.empty_like(source)
    best = 0.0
    for _ in range(12):
        start = time.thread_time()
        np.copyto(target, source)
        best = max(best, 2 * source.nbytes / max(time.thread_time() - start, 1e-9))
    return best


def _product_rate() -> float:
    n = 384
    a = np.ones((n, n), dtype=np.float32)
    best = 0.0
    for _ in range(6):
        start = time.thread_time()
        _ = a @ a
        best = max(best, 2.0 * n**3 / max(time.thread_time() - start, 1e-9))
    return best
