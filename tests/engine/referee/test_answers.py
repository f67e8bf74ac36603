"""What a wrong answer looks like, by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from workbench_engine.referee.answers import shape_of_error
from workbench_engine.referee.tolerance import Expected

TRUTH = np.random.default_rng(1).standard_normal(512)
EXACT = TRUTH.astype(np.float32)
EXPECTED = Expected(EXACT, TRUTH, "float32", 1)


def tail_left_out() -> NDArray[Any]:
    got = EXACT.copy()
    got[400:] = 0.0
    return got


@pytest.mark.parametrize(
    ("got", "again", "name"),
    [
        (np.zeros_like(EXACT), np.zeros_like(EXACT), "constant-output"),
        (tail_left_out(), tail_left_out(), "partly-wrong"),
        (EXACT * 2, EXACT * 3, "undefined-output"),
        (EXACT * np.nan, EXACT, "undefined-output"),
        (EXACT * 2, EXACT * 2, ""),
        (EXACT * 1.01, EXACT * 1.01, "inexact"),
    ],
)
def test_shapes_of_errors(got: NDArray[Any], again: NDArray[Any], name: str) -> None:
    assert shape_of_error(got, again, EXPECTED) == name


def test_integers_are_wrong_exactly() -> None:
    truth = np.arange(100)
    expected = Expected(truth, truth.astype(np.float64), "int64", 1)
    got = truth.copy()
    got[3] += 1
    assert shape_of_error(got, got, expected) == "partly-wrong"
