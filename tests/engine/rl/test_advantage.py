import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.rl.advantage import advantages, entropic, entropic_beta, grpo, is_flat, leave_one_out

groups = st.lists(st.floats(-5, 5), min_size=2, max_size=16)


@given(groups)
def test_leave_one_out_is_the_distance_to_the_mean_of_the_others(r: list[float]) -> None:
    n = len(r)
    expected = [r[i] - sum(r[j] for j in range(n) if j != i) / (n - 1) for i in range(n)]
    assert leave_one_out(r) == pytest.approx(expected, abs=1e-9)


def test_grpo_by_hand() -> None:
    # mean 2, unbiased deviation 1
    assert grpo([1.0, 2.0, 3.0], epsilon=0.0) == pytest.approx([-1.0, 0.0, 1.0])


@given(groups, st.floats(0.1, 10), st.floats(-5, 5))
def test_grpo_is_free_of_shift_and_scale(r: list[float], scale: float, shift: float) -> None:
    if max(r) - min(r) > 0.1:
        assert grpo([scale * x + shift for x in r], 0.0) == pytest.approx(grpo(r, 0.0), abs=1e-6)


def kl_of_tilt(r: list[float], beta: float) -> float:
    top = max(r)
    w = [math.exp(beta * (x - top)) for x in r]
    return sum(x / sum(w) * math.log(x / sum(w) * len(r)) for x in w if x > 0)


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=16, unique=True))
def test_entropic_beta_spends_ln_2(r: list[float]) -> None:
    ordered = sorted(r)
    if ordered[-1] - ordered[-2] > 1e-3:
        assert kl_of_tilt(r, entropic_beta(r)) == pytest.approx(math.log(2), abs=1e-6)


def test_entropic_by_hand() -> None:
    r = [0.0, 0.5, 1.0, 2.0]
    beta = entropic_beta(r)
    w = [math.exp(beta * (x - 2.0)) for x in r]
    expected = [w[i] / (sum(w[j] for j in range(4) if j != i) / 3) - 1 for i in range(4)]
    assert entropic(r) == pytest.approx(expected, rel=1e-9)
    assert entropic([10 * x - 3 for x in r]) == pytest.approx(expected, rel=1e-6)


def test_entropic_beta_stops_at_its_cap_when_most_of_the_group_ties() -> None:
    assert entropic_beta([1.0, 1.0, 1.0, 0.0]) == 1e6
    assert all(math.isfinite(a) for a in entropic([1.0, 1.0, 1.0, 0.0]))


@pytest.mark.parametrize("estimator", ["leave-one-out", "grpo", "entropic"])
def test_flat_groups_teach_nothing(estimator: str) -> None:
    for rewards in ([], [3.0], [2.0, 2.0, 2.0], [1.0, 1.0 + 1e-9]):
        assert is_flat(rewards)
        assert advantages(rewards, estimator) == (0.0,) * len(rewards)  # type: ignore[arg-type]
    assert not is_flat([1.0, 1.1])


@given(groups)
def test_the_best_of_a_group_is_never_pushed_down(r: list[float]) -> None:
    for estimator in ("leave-one-out", "grpo", "entropic"):
        a = advantages(r, estimator)
        assert a[r.index(max(r))] >= 0.0
        assert all(math.isfinite(x) for x in a)
