from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.conducting.ahead import SAMPLES, Ahead

SECONDS = st.floats(1e-3, 1e3)


def known(slots: int, asking_s: float, judging_s: float) -> Ahead:
    ahead = Ahead(slots)
    for _ in range(SAMPLES):
        ahead.asking.add(asking_s)
        ahead.judging.add(judging_s)
    return ahead


@given(st.integers(1, 64), SECONDS, SECONDS, st.integers(1, 64), st.integers(1, 16))
def test_never_more_than_allowed_and_never_none(slots: int, ask: float, judge: float, most: int, size: int) -> None:
    assert 1 <= known(slots, ask, judge).target(most, size) <= most


def test_slow_models_get_all_places_and_slow_judges_few() -> None:
    assert known(8, 1.0, 0.2).target(16) == 16
    assert known(3, 0.5, 10.0).target(16) == 2
    assert known(3, 10.0, 10.0).target(16) == 4
    assert known(4, 4.0, 4.0).target(16, group_size=4) == 2


def test_in_the_beginning_the_slots_are_filled_once() -> None:
    assert Ahead(3).target(16) == 3
    assert Ahead(8).target(4) == 4
    assert Ahead(8).target(16, group_size=8) == 1


def test_averages_follow() -> None:
    ahead = known(1, 1.0, 1.0)
    for _ in range(30):
        ahead.asking.add(5.0)
    assert 4.9 < ahead.asking.mean_s <= 5.0
