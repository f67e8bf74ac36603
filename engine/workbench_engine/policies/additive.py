"""A ridge model of reward over the values of each dimension: which single choices helped so far.

Rewards are replaced by normal scores of their ranks, so failures, floors and outliers weigh no more than their order.
The effects are a feature of the policy, not the policy: GRPO decides how far to trust them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def normal_scores(rewards: Array) -> Array:
    """Normal quantiles of the (mid-)ranks, shape [N]; ties share one score."""
    n = len(rewards)
    order = np.sort(rewards)
    low = np.searchsorted(order, rewards, side="left")
    high = np.searchsorted(order, rewards, side="right")
    quantile = NormalDist().inv_cdf
    return np.array([quantile((0.5 * (a + b)) / n) for a, b in zip(low, high, strict=True)])


def value_effects(points: Array, sizes: Sequence[int], rewards: Array, ridge: float) -> Array:
    """Effect of every value on the normal score of the reward, shape [D, max(sizes)], mean zero in each dimension.

    `points` are indices, shape [N, D]; `ridge` is in units of samples: a value seen `ridge` times is half trusted.
    """
    n, width = len(points), max(sizes)
    effects = np.zeros((len(sizes), width))
    if n < 2 or float(np.ptp(rewards)) < 1e-9:
        return effects
    y = normal_scores(rewards)
    offsets = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    x = np.zeros((n, sum(sizes)))
    x[np.arange(n)[:, None], points.astype(int) + offsets] = 1.0
    gram = x.T @ x + ridge * np.eye(x.shape[1])
    w = np.linalg.solve(gram, x.T @ (y - y.mean()))
    for d, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        effects[d, :size] = w[offset : offset + size] - w[offset : offset + size].mean()
    return effects
