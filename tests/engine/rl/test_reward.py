import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.rl.reward import RewardSettings, reward_of, smooth


def test_reward_is_ln_speedup_inside_the_bounds() -> None:
    assert reward_of("FASTER", math.e) == pytest.approx(1.0)
    assert reward_of("SLOWER", 0.5) == pytest.approx(-math.log(2))
    assert reward_of("SAME", 1.0) == 0.0
    assert reward_of("SLOWER", 1e-9) == math.log(0.05)
    assert reward_of("FASTER", 1e9) == RewardSettings().cap


def test_penalties_lie_below_the_slowest_kernel_in_order() -> None:
    slow = reward_of("SLOWER", 1e-12)
    wrong = reward_of("WRONG", None)
    for worst in (reward_of("FAILED", None), reward_of("CHEATING", 50.0)):
        assert worst < wrong < slow
    assert reward_of("AMBIGUOUS", None) == reward_of("FAILED", None)


def test_settings_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="wrong < floor"):
        RewardSettings(wrong=0.0)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_reward_never_falls_with_speedup(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert reward_of("FASTER", low) <= reward_of("FASTER", high)


def test_smoothing_clips_at_k_deviations() -> None:
    assert smooth(3.0, 1.0, 4.0) == 0.5
    assert smooth(100.0, 1.0, 1.0) == 1.5
    assert smooth(-100.0, 1.0, 1.0, k=2.0) == -2.0
    with pytest.raises(ValueError, match="sigma"):
        smooth(1.0, 0.0, 0.0)
