"""The gates are pure: what honest blocks look like passes, what each mechanism looks like does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.referee import gates
from workbench_engine.referee.gates import Block

MS = 1e-3


def blocks(n: int = 12, **changed: float) -> list[Block]:
    base = {"warm_s": MS, "timed_s": MS, "claimed_s": MS, "idle_s": 20e-6, "wall_s": MS, "stolen_s": 0.0}
    return [Block(calls=1, **(base | changed)) for _ in range(n)]


HONEST = blocks()


@pytest.mark.parametrize(
    "gate",
    [gates.hidden_work, gates.work_outside],
)
def test_honest_blocks_pass_beside_the_reference(gate: object) -> None:
    assert gate(HONEST, HONEST) is None  # type: ignore[operator]


def test_honest_blocks_pass_alone() -> None:
    assert gates.false_claim(HONEST) is None
    assert gates.helpers(HONEST) is None


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"idle_s": MS}, "hidden-work"),
        ({"idle_s": 5 * MS, "stolen_s": 4 * MS}, "reference-slowed"),
        ({"idle_s": MS, "stolen_s": 0.6 * MS}, "hidden-work"),
    ],
)
def test_processor_time_between_calls_is_named(changed: dict[str, float], code: str) -> None:
    closed = gates.hidden_work(blocks(12, **changed), HONEST)
    assert closed is not None and closed.code == code and "µs" in closed.text


def test_work_that_only_some_pairs_bring_to_light_counts() -> None:
    mixed = blocks(6, timed_s=50e-6, idle_s=MS) + blocks(6, timed_s=50e-6, idle_s=10e-6)
    closed = gates.hidden_work(mixed, HONEST)
    assert closed is not None and closed.code == "hidden-work"


def test_what_the_reference_needs_between_calls_is_allowed() -> None:
    assert gates.hidden_work(blocks(idle_s=0.9 * MS), blocks(idle_s=0.5 * MS)) is None


def test_a_false_claim_is_one_even_on_a_loaded_machine() -> None:
    waiting = blocks(wall_s=20 * MS, claimed_s=19 * MS)
    assert gates.false_claim(waiting) is None
    closed = gates.false_claim(blocks(claimed_s=1e-6))
    assert closed is not None and closed.code == "clock-disagreement"


def test_more_processor_than_one_core_has() -> None:
    closed = gates.helpers(blocks(timed_s=2 * MS, wall_s=MS))
    assert closed is not None and closed.code == "extra-cores"


def test_slow_untimed_calls() -> None:
    closed = gates.work_outside(blocks(warm_s=8 * MS), HONEST)
    assert closed is not None and closed.code == "work-outside-timing"
    assert gates.work_outside(blocks(warm_s=8 * MS), blocks(warm_s=3 * MS)) is None


@given(st.lists(st.floats(1e-6, 9e-6), min_size=4, max_size=60))
def test_one_group_of_calls_is_not_two(times: list[float]) -> None:
    assert gates.bimodal(np.array(times)) is None


@given(st.integers(4, 40), st.integers(4, 40))
def test_two_groups_are_two_whatever_their_shares(few: int, many: int) -> None:
    closed = gates.bimodal(np.array([1e-6] * few + [2e-5] * many))
    least = max(2, (few + many) // 10)
    assert (closed is not None) == (min(few, many) >= least)


def test_a_single_slow_call_is_no_second_group() -> None:
    assert gates.bimodal(np.array([1e-6] * 30 + [1.0])) is None


def test_time_that_does_not_grow() -> None:
    closed = gates.flat_scaling(1e-3, 1e-3, 1e-5, 1e-3)
    assert closed is not None and closed.code == "flat-scaling"
    assert gates.flat_scaling(1e-5, 1e-3, 1e-5, 1e-3) is None
    assert gates.flat_scaling(1e-3, 1e-3, 0.9e-3, 1e-3) is None, "the reference is flat too"


@given(st.floats(1e-6, 1e-2), st.floats(0, 1e-4))
def test_a_chain_as_slow_as_its_calls_passes(timed_s: float, overhead_s: float) -> None:
    assert gates.chain_disagreement(timed_s + overhead_s, overhead_s, 0.0, timed_s) is None


def test_a_chain_that_waits_for_hidden_work() -> None:
    closed = gates.chain_disagreement(1.2 * MS, 0.1 * MS, 0.01 * MS, 0.2 * MS)
    assert closed is not None and closed.code == "chain-disagreement"


def test_work_put_off_until_an_answer_is_looked_at() -> None:
    assert gates.lazy_answers([0.4 * MS] * 4, [0.2 * MS] * 4, MS) is None, "a strided copy is slower, and honest"
    closed = gates.lazy_answers([3 * MS] * 4, [0.2 * MS] * 4, 0.05 * MS)
    assert closed is not None and closed.code == "hidden-work"
    assert gates.lazy_answers([], [], MS) is None, "nothing was looked at"
