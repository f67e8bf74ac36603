"""Rounded answers are recognised by their errors, broken ones are not excused by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from workbench_engine.referee.precision import class_of, explains, relative_error
from workbench_engine.referee.tolerance import Expected, compare

RNG = np.random.default_rng(3)
TRUTH = RNG.standard_normal(4096)
EXACT = TRUTH.astype(np.float32)


def rounded(bits: int) -> NDArray[Any]:
    """EXACT with a mantissa of `bits` explicit bits, rounded to nearest."""
    drop = 23 - bits
    raw = EXACT.view(np.uint32).astype(np.int64) + (1 << (drop - 1))
    return (raw >> drop << drop).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize(("bits", "name"), [(23, "fp32"), (10, "tf32"), (7, "bf16")])
def test_the_class_is_that_of_the_rounding(bits: int, name: str) -> None:
    got = EXACT if bits == 23 else rounded(bits)
    found = class_of(relative_error(got, TRUTH, "float32"), relative_error(EXACT, TRUTH, "float32"), 1, "float32")
    assert found is not None and found.name == name


def test_an_answer_as_good_as_the_reference_is_of_its_class() -> None:
    found = class_of(1e-4, 0.9e-4, 1, "float32")
    assert found is not None and found.name == "fp32"


@pytest.mark.parametrize(("bits", "name"), [(10, "tf32"), (7, "bf16")])
def test_a_rounded_answer_is_wrong_and_explained(bits: int, name: str) -> None:
    expected = Expected(EXACT, TRUTH, "float32", 1)
    assert not compare(rounded(bits), expected).ok
    assert explains(rounded(bits), expected, 1) == name
    assert compare(rounded(bits), Expected(EXACT, TRUTH, "float32", 1, name)).ok, "where it is declared it is right"


def test_a_few_wrong_elements_are_not_rounding() -> None:
    got = EXACT.copy()
    got[7] *= 1.0005
    assert explains(got, Expected(EXACT, TRUTH, "float32", 1), 1) == ""


def test_garbage_has_no_class() -> None:
    assert class_of(0.5, 1e-7, 1, "float32") is None
    assert relative_error(np.full(4096, np.nan, np.float32), TRUTH, "float32") == float("inf")
