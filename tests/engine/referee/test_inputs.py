"""Input contents: of their domain, and for timed calls never seen before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from workbench_engine.referee.inputs import DISTRIBUTIONS, Bank, contents, nudged
from workbench_engine.referee.tensors import to_float64
from workbench_engine.tasks.contract import Domain, TensorSpec

DOMAINS: list[tuple[str, Domain, int]] = [
    ("float32", "real", 0),
    ("float32", "positive", 0),
    ("float32", "unit", 0),
    ("bfloat16", "real", 0),
    ("float16", "real", 0),
    ("int64", "index", 17),
    ("int32", "real", 0),
    ("bool", "bool", 0),
]


def within(values: NDArray[Any], spec: TensorSpec) -> bool:
    reals = to_float64(values, spec.dtype)
    if spec.domain == "positive":
        return bool((reals > 0).all())
    if spec.domain == "unit":
        return bool(((reals >= 0) & (reals <= 1)).all())
    if spec.domain == "index":
        return bool(((reals >= 0) & (reals < spec.high)).all())
    if spec.domain == "bool":
        return bool(((reals == 0) | (reals == 1)).all())
    return bool(np.isfinite(reals).all())


@pytest.mark.parametrize(("dtype", "domain", "high"), DOMAINS)
def test_timed_contents_keep_their_domain_and_never_come_back(dtype: str, domain: Domain, high: int) -> None:
    spec = TensorSpec("x", (64, 32), dtype, "input", domain, high)
    bank = Bank(spec, np.random.default_rng(1))
    seen = set()
    for _ in range(40):
        window = bank.window()
        assert window.dtype.itemsize * window.size == spec.nbytes and within(window, spec)
        # Whoever knows all stretches of earlier calls knows none of a later one.
        seen |= {window[i : i + 64].tobytes() for i in range(0, 2048, 64)}
    assert len(seen) == 40 * 32


def test_timed_reals_stay_standard_normal() -> None:
    bank = Bank(TensorSpec("x", (200_000,), "float32", "input"), np.random.default_rng(2))
    for _ in range(5):
        window = bank.window()
        assert abs(float(window.mean())) < 0.02 and abs(float(window.std()) - 1) < 0.02


def test_fixed_inputs_are_kept() -> None:
    own = np.arange(8, dtype=np.int64)
    bank = Bank(TensorSpec("i", (8,), "int64", "input", "fixed"), np.random.default_rng(0), own)
    assert (bank.window() == own).all()


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(DISTRIBUTIONS), st.sampled_from(DOMAINS), st.integers(1, 5), st.integers(1, 70))
def test_every_distribution_keeps_every_domain(
    distribution: str, kind: tuple[str, Domain, int], rows: int, cols: int
) -> None:
    spec = TensorSpec("x", (rows, cols), kind[0], "input", kind[1], kind[2])
    values = contents(spec, distribution, np.random.default_rng(3))
    assert values.size == rows * cols and within(values, spec)


def test_a_spike_is_in_every_row_and_often_in_the_last_column() -> None:
    spec = TensorSpec("x", (50, 30), "float32", "input")
    rows = contents(spec, "spiked", np.random.default_rng(4)).reshape(50, 30)
    assert ((rows > 100).sum(axis=1) == 1).all() and 10 < (rows[:, -1] > 100).sum() < 40


def test_a_nudge_moves_every_float_a_little_and_no_integer() -> None:
    spec = TensorSpec("x", (1000,), "float32", "input")
    values = contents(spec, "normal", np.random.default_rng(5))
    moved = nudged(values, spec, 1.0, np.random.default_rng(6))
    assert (moved != values).all() and np.allclose(moved, values, rtol=3e-7)
    index = TensorSpec("i", (10,), "int64", "input", "index", 4)
    whole = contents(index, "normal", np.random.default_rng(7))
    assert (nudged(whole, index, 1.0, np.random.default_rng(8)) == whole).all()
