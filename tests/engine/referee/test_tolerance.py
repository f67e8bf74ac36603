"""What counts as the same answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench_engine.referee.inputs import DISTRIBUTIONS, Bank, contents, moved_state
from workbench_engine.referee.tensors import from_float, is_poison, poison, to_float64
from workbench_engine.referee.tolerance import Expected, compare
from workbench_engine.tasks.contract import TensorSpec

rng = np.random.default_rng(11)


def expected_of(truth: np.ndarray, dtype: str = "float32", accumulate: int = 1) -> Expected:
    return Expected(from_float(truth, dtype), truth, dtype, accumulate)


@given(st.integers(0, 2**32), st.sampled_from(["float32", "float16", "bfloat16", "float64"]))
@settings(max_examples=30, deadline=None)
def test_the_truth_rounded_once_passes(seed: int, dtype: str) -> None:
    truth = np.random.default_rng(seed).standard_normal(500)
    assert compare(from_float(truth, dtype), expected_of(truth, dtype)).ok


@pytest.mark.parametrize("lower", ["float16", "bfloat16"])
def test_a_lower_precision_does_not_pass_for_fp32(lower: str) -> None:
    truth = rng.standard_normal(4096)
    degraded = from_float(to_float64(from_float(truth, lower), lower), "float32")
    assert not compare(degraded, expected_of(truth, accumulate=4096)).ok


def test_one_wrong_element_in_a_million_is_found() -> None:
    truth = rng.standard_normal(1_000_000)
    got = from_float(truth, "float32").copy()
    got[777_777] += 1e-3
    result = compare(got, expected_of(truth, accumulate=1024))
    assert not result.ok
    assert result.worst == 777_777


def test_a_small_error_everywhere_is_found() -> None:
    truth = rng.standard_normal(100_000)
    assert not compare(from_float(truth * (1 + 2e-6), "float32"), expected_of(truth)).ok


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_never_equals_a_number(bad: float) -> None:
    truth = rng.standard_normal(100)
    got = from_float(truth, "float32").copy()
    got[5] = bad
    assert not compare(got, expected_of(truth)).ok


def test_an_infinite_reference_checks_nothing() -> None:
    truth = np.array([1.0, np.inf])
    assert not expected_of(truth).usable()


def test_integers_compare_exactly() -> None:
    truth = np.arange(10.0)
    expected = Expected(np.arange(10), truth, "int64", 1)
    assert compare(np.arange(10), expected).ok
    assert not compare(np.arange(10) + (np.arange(10) == 3), expected).ok


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int64", "int32", "uint8", "bool"])
def test_poison_is_recognised_and_written_values_are_not(dtype: str) -> None:
    spec = TensorSpec("y", (64,), dtype, "output", "index" if dtype.startswith("int") else "real", 7)
    view = contents(spec, "normal", rng).copy()
    assert not is_poison(view, dtype).any()
    poison(view, dtype)
    assert is_poison(view, dtype).all()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_contents_keep_to_the_domain(distribution: str) -> None:
    def made(dtype: str, domain: str, high: int = 0) -> np.ndarray:
        return contents(TensorSpec("x", (32, 17), dtype, "input", domain, high), distribution, rng)  # type: ignore[arg-type]

    assert made("float32", "real").shape == (32 * 17,)
    assert (made("float32", "positive") > 0).all()
    unit = made("float32", "unit")
    assert (unit >= 0).all() and (unit <= 1).all()
    index = made("int64", "index", 5)
    assert index.min() >= 0 and index.max() < 5


def test_a_bank_never_gives_the_same_contents_twice_in_a_row() -> None:
    bank = Bank(TensorSpec("x", (1000,), "float32", "input"), np.random.default_rng(0))
    assert len({bank.window().tobytes() for _ in range(50)}) >= 49


def test_parameters_move_away_from_identity_and_stay_positive() -> None:
    spec = TensorSpec("weight", (256,), "float32", "state")
    moved = moved_state(np.ones(256, dtype=np.float32), spec, rng)
    assert (moved > 0).all() and moved.std() > 0.05
    bias = moved_state(np.zeros(256, dtype=np.float32), spec, rng)
    assert np.abs(bias).max() > 0.05
