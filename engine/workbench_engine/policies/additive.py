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


class ValueEffects:
    """Posterior of the effect of every value on the normal score of the reward (Bayesian ridge, flat in the offset).

    `points` are indices, shape [N, D]; `ridge` is in units of samples: a value seen `ridge` times is half trusted.
    """

    def __init__(self, points: Array, sizes: Sequence[int], rewards: Array, ridge: float) -> None:
        self._sizes = sizes
        self._offsets = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        n, total = len(points), sum(sizes)
        self._mean = np.zeros(total)
        self._root = np.zeros((total, total))
        if n < 2 or float(np.ptp(rewards)) < 1e-9:
            return
        y = normal_scores(rewards)
        y = y - y.mean()
        x = np.zeros((n, total))
        x[np.arange(n)[:, None], points.astype(int) + self._offsets] = 1.0
        x -= x.mean(axis=0)
        precision = x.T @ x + ridge * np.eye(total)
        self._mean = np.linalg.solve(precision, x.T @ y)
        residual = y - x @ self._mean
        # The prior variance y.var() / ridge is what few samples are allowed to be wrong by.
        variance = (float(residual @ residual) + float(y.var())) / (n + 1.0)
        self._root = np.linalg.inv(np.linalg.cholesky(precision)).T * np.sqrt(variance)

    def mean(self) -> Array:
        """Posterior mean, shape [D, max(sizes)], mean zero in each dimension, zero where there is no value."""
        return self._table(self._mean)

    def draw(self, rng: np.random.Generator, scale: float) -> Array:
        """One draw of the posterior with its deviation times `scale`, shaped as `mean`."""
        return self._table(self._mean + scale * (self._root @ rng.standard_normal(len(self._mean))))

    def _table(self, flat: Array) -> Array:
        table = np.zeros((len(self._sizes), max(self._sizes)))
        for d, (offset, size) in enumerate(zip(self._offsets, self._sizes, strict=True)):
            table[d, :size] = flat[offset : offset + size] - flat[offset : offset + size].mean()
        return table
