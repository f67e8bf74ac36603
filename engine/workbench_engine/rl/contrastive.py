"""Contrastive exemplars as CUDA-L1 draws them: distinct score buckets by softmax of their means, one code in each.

Source: CUDA-L1, arXiv 2507.14111, stage 3. `P(B_i) = exp((s_i - mu) / tau) / sum_j exp((s_j - mu) / tau)`, s_i the mean
score of bucket i, mu the mean over buckets. Bucket width, axis and temperature are not published: those here are ours.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence

from msgspec import Struct

from workbench_engine.policies.contract import Scored


class ContrastiveSettings(Struct, frozen=True):
    """How exemplars are drawn. Scores are ln speedup, so a bucket has the same relative width at 1.1x and at 10x.

    `tau` None means `tau_stds` standard deviations of the bucket means, at least `tau_floor`.
    """

    exemplars: int = 2
    width: float = 0.10
    max_buckets: int = 32
    tau: float | None = None
    tau_stds: float = 1.0
    tau_floor: float = 0.05


class Bucket(Struct, frozen=True):
    """Candidates whose ln speedup lies in one interval; `mean` is their mean ln speedup."""

    mean: float
    members: tuple[Scored, ...]


def score_of(scored: Scored) -> float | None:
    """ln speedup of a correct candidate; None when there is none to take a logarithm of."""
    if scored.speedup is None or not math.isfinite(scored.speedup) or scored.speedup <= 0.0:
        return None
    return math.log(scored.speedup)


def bucket(scored: Sequence[Scored], settings: ContrastiveSettings = ContrastiveSettings()) -> tuple[Bucket, ...]:
    """Non-empty buckets, slow to fast. Candidates without a speedup are left out.

    When there would be more than `max_buckets`, the width doubles until they fit.
    """
    rated = [(score, s) for s in scored if (score := score_of(s)) is not None]
    width = settings.width
    while True:
        members: dict[int, list[tuple[float, Scored]]] = {}
        for score, s in rated:
            # The small shift keeps a score that lies on an edge up to rounding in the bucket that starts there.
            members.setdefault(math.floor(score / width + 1e-9), []).append((score, s))
        if len(members) <= settings.max_buckets:
            break
        width *= 2.0
    return tuple(
        Bucket(math.fsum(score for score, _ in group) / len(group), tuple(s for _, s in group))
        for _, group in sorted(members.items())
    )


def temperature(means: Sequence[float], settings: ContrastiveSettings = ContrastiveSettings()) -> float:
    """tau for these bucket means, in units of ln speedup."""
    if settings.tau is not None:
        return settings.tau
    mu = math.fsum(means) / len(means)
    std = math.sqrt(math.fsum((m - mu) ** 2 for m in means) / len(means))
    return max(settings.tau_floor, settings.tau_stds * std)


def bucket_probabilities(means: Sequence[float], tau: float) -> tuple[float, ...]:
    """CUDA-L1's probabilities over buckets. Raises ValueError unless tau > 0."""
    if tau <= 0.0:
        raise ValueError(f"bucket temperature must be > 0, not {tau}")
    if not means:
        return ()
    # The published mu cancels; subtracting the largest mean instead cannot overflow.
    top = max(means)
    weights = [math.exp((m - top) / tau) for m in means]
    total = math.fsum(weights)
    return tuple(w / total for w in weights)


def draw_exemplars(
    scored: Sequence[Scored],
    settings: ContrastiveSettings,
    rng: random.Random,
    preferred: Collection[str] = (),
) -> tuple[Scored, ...]:
    """Up to `settings.exemplars` candidates of distinct buckets, slow to fast; fewer when there are fewer buckets.

    Buckets are drawn one after another without replacement (the published formula over those that are left). Inside a
    bucket those in `preferred` (which a person accepted) come before all others.
    """
    left = list(bucket(scored, settings))
    if not left:
        return ()
    tau = temperature([b.mean for b in left], settings)
    drawn: list[Bucket] = []
    while left and len(drawn) < settings.exemplars:
        weights = bucket_probabilities([b.mean for b in left], tau)
        drawn.append(left.pop(rng.choices(range(len(left)), weights)[0]))
    return tuple(_one_of(b, rng, preferred) for b in sorted(drawn, key=lambda b: b.mean))


def _one_of(bucket: Bucket, rng: random.Random, preferred: Collection[str]) -> Scored:
    liked = [m for m in bucket.members if m.candidate in preferred]
    return rng.choice(liked or bucket.members)


def draw_random(scored: Sequence[Scored], count: int, rng: random.Random) -> tuple[Scored, ...]:
    """The ablation without buckets: uniform over all correct candidates, slow to fast (CUDA-L1's "random")."""
    rated = [s for s in scored if score_of(s) is not None]
    drawn = rng.sample(rated, min(count, len(rated)))
    return tuple(sorted(drawn, key=lambda s: s.speedup or 0.0))
