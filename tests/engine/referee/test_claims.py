"""What may be claimed over several tasks, and how sure an interval is when the noise is slow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench_engine.referee.claims import faster_on, holm, p_faster, wilson
from workbench_engine.referee.statistics import (
    couples,
    estimate,
    geometric_mean_interval,
    log_ratios,
    standard_error,
    t_quantile,
    widening,
    winners_curse,
)

p_values = st.lists(st.floats(0.0, 1.0), max_size=12)


def test_holm_against_a_worked_example() -> None:
    # 0.01 ≤ 0.05/4, 0.005 ≤ 0.05/4 first; 0.03 > 0.05/2 ends it, so 0.04 is lost although it is below 0.05.
    assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert holm([0.0125, 0.016, 0.025, 0.05], 0.05) == [True, True, True, True]
    assert holm([], 0.05) == []


@given(p_values)
def test_holm_lies_between_bonferroni_and_no_correction(p: list[float]) -> None:
    for value, rejected in zip(p, holm(p, 0.05), strict=True):
        assert rejected or value > 0.05 / len(p)
        assert not rejected or value <= 0.05


@given(st.lists(st.floats(0.0, 0.2), min_size=1, max_size=8), st.integers(0, 7), st.randoms())
def test_holm_is_monotone_and_knows_no_order(p: list[float], which: int, random: object) -> None:
    before = holm(p, 0.05)
    lower = [value / 2 if i == which % len(p) else value for i, value in enumerate(p)]
    assert all(now or not was for was, now in zip(before, holm(lower, 0.05), strict=True))
    turned = p[::-1]
    assert holm(turned, 0.05) == before[::-1]


def test_holm_keeps_false_claims_rare_where_no_correction_does_not() -> None:
    rng = np.random.default_rng(11)
    draws = rng.random((4000, 10))
    corrected = np.mean([any(holm(list(row), 0.05)) for row in draws])
    bare = np.mean([any(value <= 0.05 for value in row) for row in draws])
    assert corrected <= 0.06
    assert bare > 0.35


def test_holm_refuses_a_senseless_level_and_never_claims_what_is_unknown() -> None:
    with pytest.raises(ValueError, match="0 < alpha < 1"):
        holm([0.1], 1.0)
    assert holm([math.nan, 0.001], 0.05) == [False, True]


def test_faster_on_counts_the_tasks_that_found_nothing() -> None:
    alone = faster_on({"a": 0.03})
    assert (alone.k, alone.m) == (1, 1)
    among = faster_on({"a": 0.03, "b": 1.0, "c": 1.0})
    assert (among.k, among.m, among.faster) == (0, 3, ())


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=30), st.floats(0.0, 0.3), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_p_falls_as_the_candidate_gets_faster(values: list[float], gain: float, seed: int) -> None:
    d = np.array(values)
    p = p_faster(d, 0.01, np.random.default_rng(seed), 300)
    better = p_faster(d + gain, 0.01, np.random.default_rng(seed), 300)
    assert 0.0 < better <= p <= 1.0


def test_p_of_the_clear_cases() -> None:
    rng = np.random.default_rng(0)
    assert p_faster(np.full(30, math.log(2.0)), 0.01, rng, 999) == pytest.approx(0.001)
    assert p_faster(np.full(30, 0.0), 0.01, rng, 999) == 1.0
    # Exactly at the floor is not above it.
    assert p_faster(np.full(30, math.log1p(0.01)), 0.01, rng, 999) == 1.0
    assert p_faster(np.array([]), 0.01, rng) == 1.0


def test_p_and_the_verdict_agree_on_the_side_of_the_floor() -> None:
    rng = np.random.default_rng(5)
    for shift in np.linspace(-0.02, 0.04, 13):
        d = rng.normal(shift, 0.01, 40)
        low = estimate(d, np.random.default_rng(1), 4000).low
        p = p_faster(d, 0.01, np.random.default_rng(1), 4000)
        if low > math.log1p(0.01) + 5e-4:
            assert p <= 0.025 + 1e-3
        if low < math.log1p(0.01) - 5e-4:
            assert p >= 0.025 - 1e-3


def ar1(rng: np.random.Generator, n: int, rho: float, sigma: float) -> np.ndarray:
    """Stationary AR(1) noise [n] of standard deviation `sigma`."""
    noise = np.empty(n)
    noise[0] = rng.normal(0, sigma)
    for i in range(1, n):
        noise[i] = rho * noise[i - 1] + rng.normal(0, sigma * math.sqrt(1 - rho * rho))
    return noise


def sides(rng: np.random.Generator, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """(reference, candidate) seconds of identical code in the simulation of the facts page (§5).

    1 % slow AR(1) noise that both sides of a pair share, 1 % fast noise, 2 % spikes.
    """
    slow = ar1(rng, pairs, 0.9, 0.01)
    fast = rng.normal(0, 0.01, (2, pairs)) + (rng.random((2, pairs)) < 0.02) * 0.3
    return np.exp(slow + fast[0]), np.exp(slow + fast[1])


@pytest.mark.parametrize("pairs", [8, 16, 30, 60, 300])
def test_coverage_of_the_interval_with_slow_noise_and_spikes(pairs: int) -> None:
    rng = np.random.default_rng(20)
    runs, inside, bare = 400, 0, 0
    for _ in range(runs):
        d = couples(log_ratios(*sides(rng, pairs)))
        result = estimate(d, rng, 300)
        inside += result.low <= 0.0 <= result.high
        result = estimate(d, rng, 300, widened=False)
        bare += result.low <= 0.0 <= result.high
    assert inside / runs >= 0.925
    assert bare <= inside
    if pairs <= 30:
        assert bare / runs <= 0.91


def test_the_contrast_of_timing_one_side_after_the_other() -> None:
    rng = np.random.default_rng(21)
    runs, inside = 300, 0
    for _ in range(runs):
        first, _ = sides(rng, 60)
        _, second = sides(rng, 60)
        a = np.median(rng.choice(first, (400, 60)), axis=1)
        b = np.median(rng.choice(second, (400, 60)), axis=1)
        low, high = np.quantile(np.log(a / b), [0.025, 0.975])
        inside += low <= 0.0 <= high
    assert inside / runs <= 0.75


def test_students_t_against_its_table() -> None:
    table = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 9: 2.2622, 30: 2.0423, 120: 1.9799}
    for degrees, t in table.items():
        assert t_quantile(float(degrees)) == pytest.approx(t, rel=1e-4)
    assert t_quantile(1e4) == pytest.approx(1.96020, abs=1e-4)
    assert t_quantile(10.0, 0.99) == pytest.approx(3.1693, rel=1e-4)


@given(st.integers(2, 2000))
def test_the_correction_vanishes_with_more_pairs(n: int) -> None:
    assert 1.0 < widening(n) <= 13.0
    assert widening(8 * n) < widening(n)


def test_two_values_are_not_certain() -> None:
    result = estimate(np.array([0.1, 0.2]), np.random.default_rng(0), 400)
    assert result.low < 0.1 < 0.2 < result.high
    assert result.half_width > 0.3
    assert estimate(np.array([0.1, 0.2, 0.15]), np.random.default_rng(0), 400).half_width > 0.1


def test_one_value_has_no_width() -> None:
    result = estimate(np.array([0.25]), np.random.default_rng(0), 50)
    assert (result.low, result.d, result.high) == (0.25, 0.25, 0.25)


def test_the_geometric_mean_covers_and_knows_no_order() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(100):
        tasks = [rng.normal(mean, 0.05, 30) for mean in rng.normal(0.2, 0.1, 12)]
        _, low, high = geometric_mean_interval(tasks, rng, 400)
        covered += low <= math.exp(0.2) <= high
    assert covered >= 85
    tasks = [rng.normal(mean, 0.02, 30) for mean in (0.1, 0.5, -0.2)]
    there = geometric_mean_interval(tasks, np.random.default_rng(1), 2000)
    back = geometric_mean_interval(tasks[::-1], np.random.default_rng(2), 2000)
    assert there[0] == pytest.approx(back[0])
    assert there[1:] == pytest.approx(back[1:], rel=0.05)


def test_a_geometric_mean_needs_tasks_with_pairs() -> None:
    with pytest.raises(ValueError, match="no tasks"):
        geometric_mean_interval([], np.random.default_rng(0))
    with pytest.raises(ValueError, match="no pairs to estimate"):
        geometric_mean_interval([np.array([])], np.random.default_rng(0), 10)


def test_the_winners_curse_is_the_luck_of_the_best() -> None:
    assert winners_curse(1.0, 50) == pytest.approx(2.797, abs=1e-3)
    assert winners_curse(0.5, 50) == pytest.approx(winners_curse(1.0, 50) / 2)
    assert winners_curse(1.0, 1) == winners_curse(1.0, 0) == 0.0
    luck = np.random.default_rng(4).normal(size=(4000, 50)).max(axis=1).mean()
    assert 0.75 * winners_curse(1.0, 50) < luck < winners_curse(1.0, 50)
    assert standard_error(1.96) == pytest.approx(1.0)


def test_wilson_against_published_values() -> None:
    # Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    for (k, n), interval in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }.items():
        assert wilson(k, n) == pytest.approx(interval, abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(0, 200), st.integers(0, 200))
def test_wilson_holds_the_share_and_mirrors(k: int, more: int) -> None:
    n = k + more
    low, high = wilson(k, n)
    assert 0.0 <= low <= high <= 1.0
    if n:
        assert low <= k / n <= high
        assert wilson(n - k, n) == pytest.approx((1 - high, 1 - low))
