"""Advantages of one group of samples: how much better each did than the group.

Sources: GRPO 2402.03300; leave-one-out 2402.14740; entropic: TTT-Discover 2601.16175.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

Estimator = Literal["leave-one-out", "grpo", "entropic"]

FLAT_STD = 1e-6
"""A group whose rewards spread less than this teaches nothing and is skipped."""


def is_flat(rewards: Sequence[float]) -> bool:
    """True when the group says nothing: fewer than two samples or no spread."""
    return len(rewards) < 2 or _std(rewards) < FLAT_STD


def leave_one_out(rewards: Sequence[float]) -> tuple[float, ...]:
    """`A_i = r_i - mean of the others = G / (G - 1) * (r_i - mean)`; zeros for a group of one."""
    n = len(rewards)
    if n < 2:
        return (0.0,) * n
    mean = math.fsum(rewards) / n
    return tuple(n / (n - 1) * (r - mean) for r in rewards)


def grpo(rewards: Sequence[float], epsilon: float = 1e-4) -> tuple[float, ...]:
    """`A_i = (r_i - mean) / (std + epsilon)`, std unbiased (G - 1) as in TRL; zeros for a group of one."""
    n = len(rewards)
    if n < 2:
        return (0.0,) * n
    mean = math.fsum(rewards) / n
    scale = _std(rewards) + epsilon
    return tuple((r - mean) / scale for r in rewards)


def entropic(rewards: Sequence[float], divergence: float = math.log(2.0)) -> tuple[float, ...]:
    """`A_i = w_i - 1`, `w_i = e^(beta (r_i - max)) / mean_{j != i} e^(beta (r_j - max))`; pushes towards the maximum.

    beta is such that `KL(softmax(beta r) || uniform) = divergence`. Free of the scale of the rewards.
    """
    n = len(rewards)
    if n < 2 or max(rewards) == min(rewards):
        return (0.0,) * n
    if n == 2:
        # Two samples reach ln 2 only at infinite beta, where the better one's weight has no bound.
        return leave_one_out(rewards)
    beta = entropic_beta(rewards, divergence)
    top = max(rewards)
    weights = [math.exp(beta * (r - top)) for r in rewards]
    total = math.fsum(weights)
    return tuple(w / ((total - w) / (n - 1) + 1e-12) - 1.0 for w in weights)


def entropic_beta(rewards: Sequence[float], divergence: float = math.log(2.0), cap: float = 1e6) -> float:
    """beta of `entropic`: doubled from 1 until the KL is enough (at most `cap`), then 60 bisections in [0, high].

    When more than half of the group ties at the top the KL cannot reach ln 2 and beta is the cap.
    """
    high = 1.0
    while _tilt_kl(rewards, high) < divergence:
        if high >= cap:
            return cap
        high = min(cap, 2.0 * high)
    low = 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _tilt_kl(rewards, middle) < divergence:
            low = middle
        else:
            high = middle
    return high


_ESTIMATORS: dict[Estimator, Callable[[Sequence[float]], tuple[float, ...]]] = {
    "leave-one-out": leave_one_out,
    "grpo": grpo,
    "entropic": entropic,
}


def advantages(rewards: Sequence[float], estimator: Estimator) -> tuple[float, ...]:
    """Advantages by name; zeros for a flat group."""
    if is_flat(rewards):
        return (0.0,) * len(rewards)
    return _ESTIMATORS[estimator](rewards)


def _tilt_kl(rewards: Sequence[float], beta: float) -> float:
    top = max(rewards)
    weights = [math.exp(beta * (r - top)) for r in rewards]
    total = math.fsum(weights)
    return math.fsum(w / total * math.log(w / total * len(rewards)) for w in weights if w > 0.0)


def _std(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / max(1, len(values) - 1))
