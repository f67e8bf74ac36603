"""Every published number of CUDA-L1's reward protocol."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.rl.cuda_l1_reward import (
    Score,
    bucket_means,
    needs_second,
    score_of,
    settle,
    smoothed,
    towards_one,
)

ratios = st.lists(st.floats(0.01, 100.0), min_size=7, max_size=80)


@pytest.mark.parametrize(
    ("score", "rounded"),
    [
        (1.118, 1.11),
        (0.992, 1.00),
        (1.0, 1.0),
        (1.15, 1.15),  # the float lies below 1.15: cut in binary it would be 1.14
        (2.29, 2.29),
        (0.57, 0.57),
        (0.571, 0.58),
        (0.991, 1.00),
        (1.009999, 1.00),
        (3.999, 3.99),
    ],
)
def test_two_decimals_towards_one(score: float, rounded: float) -> None:
    assert towards_one(score) == rounded


@given(st.floats(0.01, 1000.0))
def test_rounding_goes_towards_one_by_less_than_a_hundredth_and_only_once(score: float) -> None:
    rounded = towards_one(score)
    assert min(score, 1.0) <= rounded <= max(score, 1.0)
    assert abs(Decimal(repr(rounded)) - Decimal(repr(score))) < Decimal("0.01")
    assert towards_one(rounded) == rounded


@given(ratios)
def test_seven_buckets_hold_every_ratio_once(values: list[float]) -> None:
    means = bucket_means(values)
    assert len(means) == 7
    length, rest = divmod(len(values), 7)
    sizes = [length + (i < rest) for i in range(7)]
    assert math.fsum(m * n for m, n in zip(means, sizes, strict=True)) == pytest.approx(math.fsum(values))


def test_the_score_is_the_median_of_the_bucket_means() -> None:
    # One bucket far off moves the mean of all, not the median: 6 × 1.5 and 1 × 1.6.
    values = [1.5] * 18 + [1.6] * 3
    assert score_of(values) == Score(1.5)
    # Inside a bucket it is the mean that counts: (1 + 1 + 2.5) / 3.
    assert score_of([1.0, 1.0, 2.5] * 7) == Score(1.5)


def test_the_variance_gate_is_at_five_thousandths() -> None:
    def spread(step: float) -> list[float]:
        return [1.5 + step * i for i in (-1, -1, -1, 0, 1, 1, 1)]

    # The population variance of these seven is 6/7 of step².
    below, above = math.sqrt(0.00499 * 7 / 6), math.sqrt(0.00501 * 7 / 6)
    assert score_of(spread(below)).value == 1.5
    refused = score_of(spread(above))
    assert refused.value is None and "variance" in refused.reason


def test_what_is_no_measurement_has_no_score() -> None:
    assert score_of([1.0] * 6).value is None
    assert score_of([1.0] * 6 + [math.nan]).value is None
    assert score_of([1.0] * 6 + [0.0]).value is None
    with pytest.raises(ValueError, match="do not fill"):
        bucket_means([1.0] * 6)


def test_far_scores_and_jumps_need_a_second_device() -> None:
    assert not needs_second(3.0, 2.0)
    assert needs_second(3.01, 2.9)
    assert not needs_second(2.4, 1.2)
    assert needs_second(2.41, 1.2)
    assert not needs_second(2.99, None)


def test_ten_per_cent_between_devices() -> None:
    assert settle(3.3, Score(3.0), "on b").value == 3.0
    assert settle(3.0, Score(3.3), "on b").value == 3.0
    refused = settle(3.31, Score(3.0), "on b")
    assert refused.value is None and "on b" in refused.reason and "10%" in refused.reason
    assert settle(3.3, Score(None, "discarded"), "on b").value is None


@given(st.floats(0.0, 50.0), st.lists(st.floats(0.1, 50.0), max_size=40))
def test_smoothing_is_bounded_by_one_and_a_half(score: float, scores: list[float]) -> None:
    assert -1.5 <= smoothed(score, scores) <= 1.5


def test_smoothing_by_hand() -> None:
    assert smoothed(1.4, []) == pytest.approx(0.4)
    # Fewer than eight scores: divided by 1.
    assert smoothed(2.0, [1.0, 1.5]) == pytest.approx(0.75)
    eight = [1.0, 2.0] * 4
    assert smoothed(1.75, eight) == pytest.approx(0.5)
    assert smoothed(0.0, eight) == -1.5
    assert smoothed(1.3, [1.2] * 8) == pytest.approx(0.1)
