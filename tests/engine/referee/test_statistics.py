"""The numbers a verdict rests on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench_engine.referee.judge import enough, roofline_s, verdict_of
from workbench_engine.referee.statistics import (
    Estimate,
    between_processes,
    block_length,
    bootstrap_interval,
    couples,
    estimate,
    floor_from_runs,
    geometric_mean_interval,
    log_ratios,
    pairs_needed,
    spread,
)

times = st.lists(st.floats(1e-6, 1.0), min_size=8, max_size=60)


def test_block_length_is_the_cube_root_rounded_up() -> None:
    assert [block_length(n) for n in (1, 8, 27, 30, 64, 300)] == [1, 2, 3, 4, 4, 7]


@given(times, st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_the_interval_holds_the_median_and_swapping_sides_mirrors_it(values: list[float], seed: int) -> None:
    reference = np.array(values)
    candidate = np.roll(reference, 1) * 1.5
    forward = estimate(log_ratios(reference, candidate), np.random.default_rng(seed))
    backward = estimate(log_ratios(candidate, reference), np.random.default_rng(seed))
    assert forward.low <= forward.d <= forward.high
    assert forward.d == pytest.approx(-backward.d, abs=1e-9)
    assert forward.low == pytest.approx(-backward.high, abs=0.2 + abs(forward.high - forward.low))


@given(st.floats(0.1, 10.0))
def test_a_constant_ratio_is_found_exactly(ratio: float) -> None:
    reference = np.linspace(1.0, 2.0, 30)
    result = estimate(log_ratios(reference * ratio, reference), np.random.default_rng(0))
    assert result.speedup == pytest.approx(ratio)
    assert result.half_width == pytest.approx(0.0, abs=1e-12)


def test_coverage_of_the_interval_under_drift_and_spikes() -> None:
    rng = np.random.default_rng(7)
    truth, inside = math.log(1.05), 0
    for _ in range(200):
        slow = np.cumsum(rng.normal(0, 0.002, 60))
        noise = rng.normal(0, 0.01, (2, 60)) + (rng.random((2, 60)) < 0.02) * 0.3
        reference = np.exp(slow + noise[0]) * 1.05
        candidate = np.exp(slow + noise[1])
        low, high = bootstrap_interval(log_ratios(reference, candidate), rng, resamples=400)
        inside += low <= truth <= high
    assert inside >= 180


@given(st.floats(0.001, 0.05), st.floats(0.001, 0.05))
def test_narrower_intervals_and_noisier_pairs_need_more(width: float, sigma: float) -> None:
    d = np.random.default_rng(3).normal(0, sigma, 200)
    assert pairs_needed(d, width, 10**9) >= pairs_needed(d, width * 2, 10**9)
    assert pairs_needed(d * 2, width, 10**9) >= pairs_needed(d, width, 10**9)
    assert pairs_needed(d, width, 5) <= 5


def test_spread_ignores_outliers() -> None:
    d = np.array([0.0, 0.01, -0.01, 0.005, -0.005, 50.0])
    assert spread(d) < 0.02


def test_the_floor_never_lies_below_one_percent() -> None:
    assert floor_from_runs([0.0001, -0.0002]) == 0.01
    assert floor_from_runs([0.0, 0.0, 0.08, -0.02, 0.01]) > 0.05
    with pytest.raises(ValueError, match="at least one run"):
        floor_from_runs([])


@given(st.floats(-1, 1), st.floats(0, 0.3), st.floats(0.01, 0.1))
def test_verdicts_are_what_the_interval_allows(d: float, half: float, delta: float) -> None:
    verdict = verdict_of(Estimate(d, d - half, d + half, 30), delta)
    floor = math.log1p(delta)
    if verdict == "FASTER":
        assert d - half > floor
    elif verdict == "SLOWER":
        assert d + half < -floor
    elif verdict == "SAME":
        assert abs(d) + half <= floor + 1e-12
    else:
        assert d - half <= floor and d + half >= -floor


def test_width_alone_stops() -> None:
    assert enough(Estimate(0.5, 0.499, 0.501, 30), 0.005, 30)
    assert not enough(Estimate(0.5, 0.499, 0.501, 29), 0.005, 30)
    assert not enough(Estimate(0.5, 0.4, 0.6, 300), 0.005, 30)


def test_the_roofline_is_the_slower_of_traffic_and_arithmetic() -> None:
    assert roofline_s(1000, 10, 1000.0, 1000.0) == pytest.approx(1.0)
    assert roofline_s(10, 5000, 1000.0, 1000.0) == pytest.approx(5.0)
    assert roofline_s(None, None, 1.0, 1.0) is None


def test_geometric_mean_of_equal_tasks() -> None:
    tasks = [np.full(30, math.log(2.0)), np.full(30, math.log(0.5))]
    centre, low, high = geometric_mean_interval(tasks, np.random.default_rng(1), 200)
    assert centre == pytest.approx(1.0)
    assert low <= 1.0 <= high


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=40), st.floats(-0.5, 0.5))
def test_whoever_is_second_being_slower_cancels_in_couples(d: list[float], penalty: float) -> None:
    """A penalty on the second mover raises AB and lowers BA by the same amount."""
    values = np.array(d[: len(d) // 2 * 2])
    signs = np.tile([1.0, -1.0], len(values) // 2)
    assert couples(values + penalty * signs) == pytest.approx(couples(values))


def test_an_odd_pair_is_left_out_and_a_lone_one_kept() -> None:
    assert couples(np.array([1.0, 3.0, 9.0])).tolist() == [2.0]
    assert couples(np.array([5.0])).tolist() == [5.0]


def test_luck_between_processes_is_told_from_noise_within() -> None:
    rng = np.random.default_rng(5)
    quiet = [rng.normal(0.0, 0.01, 40) for _ in range(40)]
    assert between_processes(quiet) <= 0.006
    lucky = [rng.normal(rng.normal(0.0, 0.03), 0.01, 40) for _ in range(200)]
    assert 0.025 < between_processes(lucky) < 0.035
    assert between_processes([]) == 0.005


def test_luck_widens_an_interval_in_quadrature() -> None:
    d = np.random.default_rng(6).normal(0.1, 0.02, 60)
    bare = estimate(d, np.random.default_rng(7))
    wide = estimate(d, np.random.default_rng(7), between=0.01)
    assert wide.d == bare.d
    assert math.isclose(wide.high - wide.d, math.hypot(bare.high - bare.d, 0.0196))
