import itertools
import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.policies.contract import Scored
from workbench_engine.rl.contrastive import (
    ContrastiveSettings,
    bucket,
    bucket_probabilities,
    draw_exemplars,
    score_of,
    temperature,
)


def scored(speedups: list[float | None]) -> list[Scored]:
    return [Scored(f"c{i}", "", None, s, "FASTER", 0, 0) for i, s in enumerate(speedups)]


speedup_lists = st.lists(st.one_of(st.none(), st.floats(1e-3, 1e3)), max_size=60)


@given(speedup_lists)
def test_buckets_hold_every_timed_candidate_once_and_rise(speedups: list[float | None]) -> None:
    settings = ContrastiveSettings()
    buckets = bucket(scored(speedups), settings)
    members = [m.candidate for b in buckets for m in b.members]
    assert sorted(members) == sorted(f"c{i}" for i, s in enumerate(speedups) if s is not None)
    assert len(buckets) <= settings.max_buckets
    assert all(a.mean < b.mean for a, b in itertools.pairwise(buckets))


def test_a_bucket_is_a_tenth_wide_on_ln_speedup() -> None:
    ratios = [math.exp(x) for x in (0.01, 0.09, 0.11, -0.01)]
    assert [len(b.members) for b in bucket(scored(list(ratios)))] == [1, 2, 1]


def test_edges_belong_to_the_bucket_that_starts_there() -> None:
    assert [len(b.members) for b in bucket(scored([math.exp(0.3), math.exp(0.35)]))] == [2]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=32), st.floats(0.05, 10), st.floats(-3, 3))
def test_probabilities_follow_the_published_formula(means: list[float], tau: float, shift: float) -> None:
    p = bucket_probabilities(means, tau)
    mu = sum(means) / len(means)
    weights = [math.exp((m - mu) / tau) for m in means]
    assert p == pytest.approx([w / sum(weights) for w in weights], rel=1e-6, abs=1e-300)
    assert math.fsum(p) == pytest.approx(1.0)
    assert bucket_probabilities([m + shift for m in means], tau) == pytest.approx(p, rel=1e-6, abs=1e-12)


def test_probabilities_do_not_overflow_and_refuse_no_temperature() -> None:
    assert bucket_probabilities([0.0, 900.0], 0.05) == (0.0, 1.0)
    with pytest.raises(ValueError, match="> 0"):
        bucket_probabilities([0.0], 0.0)


def test_temperature_is_the_spread_with_a_floor() -> None:
    assert temperature([0.0, 2.0]) == pytest.approx(1.0)
    assert temperature([0.3]) == 0.05
    assert temperature([0.0, 2.0], ContrastiveSettings(tau=0.7)) == 0.7


@given(speedup_lists, st.integers(1, 4), st.integers(0, 1000))
def test_exemplars_come_from_distinct_buckets_slow_to_fast(speedups: list[float | None], count: int, seed: int) -> None:
    pool = scored(speedups)
    settings = ContrastiveSettings(exemplars=count)
    drawn = draw_exemplars(pool, settings, random.Random(seed))
    buckets = bucket(pool, settings)
    assert len(drawn) == min(count, len(buckets))
    places = [next(i for i, b in enumerate(buckets) if x in b.members) for x in drawn]
    assert places == sorted(set(places))
    scores = [score_of(x) or 0.0 for x in drawn]
    assert scores == sorted(scores)


def test_single_draws_have_the_frequencies_of_the_formula() -> None:
    pool = scored([1.0, 2.0, 4.0])
    settings = ContrastiveSettings(exemplars=1)
    rng = random.Random(3)
    counts = Counter(draw_exemplars(pool, settings, rng)[0].candidate for _ in range(6000))
    means = [b.mean for b in bucket(pool, settings)]
    for i, p in enumerate(bucket_probabilities(means, temperature(means, settings))):
        assert counts[f"c{i}"] / 6000 == pytest.approx(p, abs=0.03)
