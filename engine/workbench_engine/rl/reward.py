"""What a learning policy is paid: ln speedup, bounded, and fixed penalties below every working kernel.

ln makes 2x faster and 2x slower weigh the same. The floor keeps one very slow kernel from drowning a group; the cap
keeps one timing accident from doing so. Smoothing is CUDA-L1's (arXiv 2507.14111).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from workbench_sessions.events import Verdict


class RewardSettings(Struct, frozen=True):
    """Bounds in units of ln speedup. Penalties are ordered: built but wrong costs less than no kernel or a cheat."""

    floor: float = math.log(0.05)
    cap: float = math.log(100.0)
    wrong: float = math.log(0.05) - 0.5
    failed: float = math.log(0.05) - 1.0
    cheating: float = math.log(0.05) - 1.0

    def __post_init__(self) -> None:
        if not (self.failed < self.wrong < self.floor < self.cap and self.cheating < self.wrong):
            raise ValueError(
                "reward settings must keep failed, cheating < wrong < floor < cap; got "
                f"failed {self.failed:.3g}, cheating {self.cheating:.3g}, wrong {self.wrong:.3g}, "
                f"floor {self.floor:.3g}, cap {self.cap:.3g}"
            )


_PENALTY: Mapping[str, str] = {"WRONG": "wrong", "FAILED": "failed", "CHEATING": "cheating"}


def reward_of(verdict: Verdict, speedup: float | None, settings: RewardSettings = RewardSettings()) -> float:
    """Reward of one judged candidate, in units of ln speedup (0 = as fast as the reference).

    A verdict that should carry a speedup but does not (never timed) counts as failed.
    """
    if verdict in _PENALTY:
        return float(getattr(settings, _PENALTY[verdict]))
    if speedup is None or math.isnan(speedup) or speedup <= 0.0:
        return settings.failed
    return min(settings.cap, max(settings.floor, math.log(speedup)))


def smooth(r: float, mu: float, sigma: float, k: float = 1.5) -> float:
    """CUDA-L1's smoothing: `clip((r - mu) / sigma, -k, k)`. Raises ValueError unless sigma > 0 and k > 0."""
    if sigma <= 0.0 or k <= 0.0:
        raise ValueError(f"smoothing needs sigma > 0 and k > 0, not sigma = {sigma}, k = {k}")
    return min(k, max(-k, (r - mu) / sigma))
