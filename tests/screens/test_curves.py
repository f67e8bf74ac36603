from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_screens import braille, medians
from workbench_screens.curves import Series, chart, span, ticks
from workbench_screens.lines import plain, width_of
from workbench_screens.words import ASCII, UNICODE
from workbench_sessions.projection import PairSeries

numbers = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=300)


@given(numbers, st.integers(1, 40))
def test_decimation_keeps_every_spike(values: list[float], columns: int) -> None:
    y = np.array(values)
    x = np.arange(y.size, dtype=float)
    low, high = braille.decimate(x, y, 0.0, float(max(1, y.size - 1)), columns)
    assert np.nanmin(low) == y.min() and np.nanmax(high) == y.max()
    assert np.all(low[np.isfinite(low)] <= high[np.isfinite(high)])


@given(numbers, st.integers(1, 40))
def test_each_slice_holds_its_own_points(values: list[float], columns: int) -> None:
    y = np.array(values)
    x = np.arange(y.size, dtype=float)
    end = float(max(1, y.size - 1))
    low, high = braille.decimate(x, y, 0.0, end, columns)
    slots = np.minimum((x / end * columns).astype(int), columns - 1)
    for column in range(columns):
        inside = y[slots == column]
        assert (inside.size == 0) == bool(np.isnan(low[column]))
        if inside.size:
            assert (low[column], high[column]) == (inside.min(), inside.max())


def test_points_outside_and_nan_are_left_out() -> None:
    low, high = braille.decimate(np.array([0.0, 1, 2, 9]), np.array([1.0, np.nan, 3, 99]), 0.0, 2.0, 2)
    assert low.tolist() == [1.0, 3.0] and high.tolist() == [1.0, 3.0]


@given(st.integers(1, 6), st.integers(1, 20), st.randoms())
def test_braille_shows_exactly_the_dots(rows: int, columns: int, random: object) -> None:
    dots = np.random.default_rng(rows * 100 + columns).random((rows * 4, columns * 2)) < 0.3
    text = braille.cells(dots)
    lit = sum((ord(char) - 0x2800).bit_count() for row in text for char in row if char != " ")
    assert lit == int(dots.sum())
    assert [len(row) for row in text] == [columns] * rows
    plain_text = braille.ascii_cells(dots)
    assert [[c == " " for c in row] for row in plain_text] == [[c == " " for c in row] for row in text]


def test_a_step_curve_holds_its_value() -> None:
    low, high = braille.decimate(np.array([0.0, 3.0]), np.array([0.0, 1.0]), 0.0, 3.0, 4)
    dots = braille.curve(low, high, 0.0, 1.0, 4, step=True)
    assert dots[3].tolist() == [True, True, True, True] and dots[0].tolist() == [False, False, False, True]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 10))
def test_ticks_are_inside_and_few(low: float, width: float, count: int) -> None:
    marks = ticks(low, low + width, count)
    slack = 1e-6 * max(abs(low), width)
    assert len(marks) <= count + 1
    assert all(low - slack <= mark <= low + width + slack for mark in marks)


def test_a_constant_still_has_a_range() -> None:
    low, high = span([np.array([2.0, 2.0])])
    assert low < 2.0 < high
    assert span([np.array([np.nan])]) == (0.0, 1.0)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize("size", [(30, 6), (79, 15), (150, 30)])
def test_a_chart_is_exactly_as_large_as_asked(glyphs: object, size: tuple[int, int]) -> None:
    x = np.arange(50, dtype=float)
    y = np.sin(x)
    series = Series("title", x, y, "faster", low=y - 0.2, high=y + 0.2)
    lines = chart(series, *size, (0.0, 49.0), glyphs, cursor=20.0, marks=[(10.0, "cheat")])  # type: ignore[arg-type]
    assert len(lines) == size[1]
    assert all(width_of(line) == size[0] for line in lines[1:])
    if glyphs is ASCII:
        assert all(plain(line).isascii() for line in lines)


def test_marks_never_cover_a_number() -> None:
    line = Series("t", np.array([0.0, 100.0]), np.array([1.0, 2.0]), "")
    bare = plain(chart(line, 80, 8, (0, 100), UNICODE)[-1]).split()
    marks = [(float(x), "cheat") for x in range(0, 101, 5)]
    marked = plain(chart(line, 80, 8, (0, 100), UNICODE, marks=marks)[-1])
    assert marked.replace("⚠", " ").split() == bare and "⚠" in marked


def test_the_cursor_reads_the_value_before_it() -> None:
    series = Series("t", np.array([0.0, 10.0]), np.array([1.0, 2.5]), "")
    assert "1.00" in plain(chart(series, 60, 8, (0, 10), UNICODE, cursor=9.0)[0])
    assert "2.50" in plain(chart(series, 60, 8, (0, 10), UNICODE)[0])


def test_no_values_say_so() -> None:
    empty = Series("t", np.zeros(0), np.zeros(0), "")
    assert "no values" in plain(chart(empty, 60, 8, (0, 1), UNICODE)[1])


def series(ratio: float, noise: list[float]) -> PairSeries:
    return PairSeries(
        candidate="c1",
        device="cpu0",
        phase="search",
        calls=1,
        threads=1,
        reference_s=[1e-3 * math.exp(n) for n in noise],
        candidate_s=[1e-3 / ratio for _ in noise],
    )


@given(st.floats(0.2, 5), st.lists(st.floats(-0.1, 0.1), min_size=1, max_size=80))
def test_the_running_median_lies_in_its_interval(ratio: float, noise: list[float]) -> None:
    logs = medians.logs_of(series(ratio, noise))
    now = medians.running(logs)
    assert now is not None and now.pairs == len(noise)
    assert now.lower <= now.median * (1 + 1e-9) and now.median <= now.upper * (1 + 1e-9)
    assert now.median == pytest.approx(ratio * math.exp(float(np.median(noise))))
    assert medians.history(logs, 10)[-1] == now


def test_times_that_are_not_positive_are_left_out() -> None:
    broken = PairSeries("c", "d", "search", 1, 1, [1.0, 0.0, 2.0], [1.0, 1.0, 1.0])
    assert medians.logs_of(broken).tolist() == [0.0, math.log(2)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.integers(1, 30))
def test_a_histogram_counts_everything(values: list[float], bins: int) -> None:
    assert sum(medians.histogram(values, 0.2, 0.8, bins)) == len(values)
    assert sum(medians.histogram(values, 0.5, 0.5, bins)) == len(values)


def test_smoothing_is_unbiased_at_the_start() -> None:
    out = braille.smooth(np.array([2.0, 2.0, np.nan, 2.0]), 0.9)
    assert out == pytest.approx([2.0, 2.0, 2.0, 2.0])
