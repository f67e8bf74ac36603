"""Expressions: they agree with Python's arithmetic, and whatever they are given they answer or say what is wrong."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.backends.cuda import expressions
from workbench_engine.backends.cuda.expressions import ExpressionError, names_in, parse, real, show, whole

DIMS = {"rows": 1024, "cols": 129, "zero": 0}


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def written(leaf: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts that are expressions for us and for Python alike."""
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(lambda a, o, b: f"({a} {o} {b})", inner, st.sampled_from(expressions.OPERATORS), inner),
            st.builds(lambda a: f"-{a}", inner),
            st.builds(lambda f, a, b: f"{f}({a}, {b})", st.sampled_from(list(expressions.FUNCTIONS)), inner, inner),
            st.builds(lambda a, o, b: f"{a} {o} {b}", leaf, st.sampled_from(("+", "*", "//", "-")), leaf),
        ),
        max_leaves=8,
    )


LEAVES = st.one_of(st.integers(0, 4096).map(str), st.sampled_from(list(DIMS)))


@given(written(LEAVES))
def test_a_value_is_that_of_python(text: str) -> None:
    names: dict[str, Any] = {**DIMS, "ceil_div": ceil_div, "min": min, "max": max}
    try:
        expected = eval(text, {"__builtins__": {}}, names)
    except ZeroDivisionError:
        with pytest.raises(ExpressionError):
            real(parse(text), DIMS)
        return
    assert isinstance(expected, bool | int | float)
    try:
        assert math.isclose(real(parse(text), DIMS), expected, rel_tol=1e-12, abs_tol=1e-12)
    except ExpressionError as error:
        assert "64 bits" in str(error)
    if "/" not in text.replace("//", ""):
        try:
            assert whole(parse(text), DIMS) == expected
        except ExpressionError as error:
            assert "64 bits" in str(error)


@given(written(LEAVES))
def test_what_is_shown_reads_back_to_the_same(text: str) -> None:
    tree = parse(text)
    assert parse(show(tree)) == tree
    assert names_in(tree) <= DIMS.keys()


@given(st.text(alphabet="0123456789+-*/%()<>=!,. rowsminax_\n\t\"'[]", max_size=60))
def test_any_text_is_an_expression_or_an_error_of_one_line(text: str) -> None:
    try:
        whole(parse(text), DIMS)
    except ExpressionError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4", 14),
        ("-rows // 3", -342),
        ("7 % 4", 3),
        ("ceil_div(cols, 128)", 2),
        ("min(rows, cols, 7)", 7),
        ("cols % 4 == 0", 0),
        ("(cols % 3 == 0) * (rows % 4 == 0)", 1),
        ("10 - 3 - 2", 5),
        (12, 12),
        (-1, -1),
    ],
)
def test_known_values(text: str | int, value: int) -> None:
    assert whole(parse(text), DIMS) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rows +", r"column 7: a number, a dim or '\(' is expected, not the end"),
        ("rows cols", "column 6: an operator or the end is expected, not 'cols'"),
        ("rows & 1", "column 6: '&' means nothing here"),
        ("__import__('os')", r"column 11: an operator or the end is expected, not '\('|means nothing here"),
        ("rows.real", "means nothing here"),
        ("ceil_div(1)", "ceil_div takes 2 arguments, not 1"),
        ("min", r"'\(' is expected after min"),
        ("(" * 100 + "1" + ")" * 100, "nested more than 40 deep"),
        ("1+" * 300 + "1", "longer than 400 characters"),
        (True, "is no expression"),
        ([1], "is no expression"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(text: Any, says: str) -> None:
    with pytest.raises(ExpressionError, match=says):
        parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("row", "no dim is called 'row'; known: rows, cols, zero"),
        ("rows / 4", "use // or ceil_div"),
        ("1.5 * rows", "a whole number is wanted"),
        ("rows % zero", "divides by zero with rows = 1024"),
        ("ceil_div(rows, zero)", "divides by zero"),
        ("9223372036854775807 * rows", "64 bits"),
    ],
)
def test_what_cannot_be_evaluated_says_why(text: str, says: str) -> None:
    with pytest.raises(ExpressionError, match=says):
        whole(parse(text), DIMS)


def test_real_numbers_divide() -> None:
    assert real(parse("1.0 / cols"), DIMS) == pytest.approx(1 / 129)
    with pytest.raises(ExpressionError, match="64 bits"):
        real(parse("1e308 * 1e308"), DIMS)
