"""The A/A bench: what is folded from its runs, and the contrast of timing one side after the other."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.benching.against_itself import Measured, cells, load, method, share
from workbench_engine.referee.sequential import unpaired

times = st.lists(st.floats(1e-6, 1.0), min_size=3, max_size=40)


def test_shares_count_only_what_was_timed() -> None:
    runs = [
        Measured("SAME", 0.0, -0.01, 0.01, 30),
        Measured("FASTER", 0.05, 0.03, 0.07, 30),
        Measured("AMBIGUOUS", -0.02, -0.05, -0.001, 30),
        Measured("FAILED"),
    ]
    found = method("pairs", runs)
    assert (found.covered.k, found.covered.n) == (1, 3)
    assert (found.false_faster.k, found.false_faster.n) == (1, 4)
    assert (found.above.k, found.above.n) == (1, 3)
    assert found.largest == 0.05 and found.width == pytest.approx(0.04)
    row = cells(found)
    assert row[1].startswith("33.3% [") and row[2].startswith("25.0% [")
    assert "2 SAME" not in row[-1] and "1 FAILED" in row[-1]


def test_nothing_timed_is_said_as_such() -> None:
    found = method("pairs", [Measured("FAILED")])
    assert cells(found)[1] == "—"
    assert share(0, 200).high < 0.02


@given(times, times, st.floats(0.1, 10.0))
@settings(max_examples=30, deadline=None)
def test_the_contrast_finds_a_ratio_and_mirrors(a: list[float], b: list[float], factor: float) -> None:
    first, second = np.array(a), np.array(b)
    there = unpaired(first, second, np.random.default_rng(0), 200)
    scaled = unpaired(first * factor, second, np.random.default_rng(0), 200)
    assert scaled.d - there.d == pytest.approx(math.log(factor), abs=1e-9)
    assert scaled.low - there.low == pytest.approx(math.log(factor), abs=1e-9)
    assert unpaired(second, first, np.random.default_rng(0), 200).d == pytest.approx(-there.d)


def test_the_contrast_needs_both_sides() -> None:
    with pytest.raises(ValueError, match="both sides"):
        unpaired(np.array([]), np.array([1.0]), np.random.default_rng(0))


def test_the_load_is_there_and_gone_afterwards() -> None:
    def children() -> set[int]:
        from pathlib import Path

        me = os.getpid()
        found: set[int] = set()
        for task in Path(f"/proc/{me}/task").iterdir():
            found |= {int(pid) for pid in (task / "children").read_text().split()}
        return found

    before = children()
    cores = sorted(os.sched_getaffinity(0))[:1]
    with pytest.raises(RuntimeError), load(2, cores):
        busy = children() - before
        assert len(busy) == 2
        assert all(os.sched_getaffinity(pid) == set(cores) for pid in busy)
        raise RuntimeError
    assert not children() & busy
