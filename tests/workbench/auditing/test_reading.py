from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.auditing.progress import line
from workbench.auditing.reading import read_rows
from workbench.auditing.rows import Outcome, claim, natural
from workbench.errors import UsageProblem

Entry = Callable[..., dict[str, Any]]


def lines(*entries: dict[str, Any]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in entries).encode()


def test_json_lines_keep_order_claims_and_unknown_fields(entry: Entry) -> None:
    rows = read_rows(lines(entry(3, "x = 1", score=2.25, note="kept"), entry(1, None, level=2)), "f")
    assert [row.key for row in rows] == ["1/3", "2/1"]
    assert rows[0].claims == {"score_default": 2.25, "score_cuda_graph": None}
    assert rows[0].extra == {"cuda_graph_code": None, "note": "kept"}
    assert rows[1].candidate is None and not rows[1].problem


def test_one_array_and_an_object_of_levels_say_the_same(entry: Entry) -> None:
    array = json.dumps([entry(1, "a = 1"), entry(2, "b = 1")]).encode()
    by_level = {
        "1": [{"task_id": n, "ref_code": "r", "custom_code": c, "score": "3.75"} for n, c in ((1, "a"), (2, None))],
        "2": [],
    }
    assert [r.key for r in read_rows(array, "f")] == ["1/1", "1/2"]
    rows = read_rows(json.dumps(by_level, indent=1).encode(), "f")
    assert [r.key for r in rows] == ["1/1", "1/2"]
    assert rows[0].claims == {"score": 3.75}


def test_a_bad_line_is_a_row_and_stops_nothing(entry: Entry) -> None:
    data = lines(entry(1, "a")) + b'{"level_id": 1, "task\n\n[1, 2]\n' + lines(entry(2, "b"))
    rows = read_rows(data, "f")
    assert [bool(row.problem) for row in rows] == [False, True, True, False]
    assert rows[1].where == "line 2" and "not valid JSON" in rows[1].problem
    assert rows[2].where == "line 4" and "list" in rows[2].problem
    assert len({row.key for row in rows}) == 4


def test_the_very_first_line_may_be_the_bad_one(entry: Entry) -> None:
    rows = read_rows(b"{nonsense\n" + lines(entry(1, "a")), "f")
    assert [bool(row.problem) for row in rows] == [True, False]


def test_wrong_types_and_missing_fields_are_problems_of_the_row(entry: Entry) -> None:
    rows = read_rows(
        lines(
            entry(1, 5),
            {**entry(2, "a"), "ref_code": None},
            {"level_id": 1, "task_id": 3, "ref_code": "r"},
            {**entry(4, "a"), "level_id": None, "task_id": {"a": 1}},
        ),
        "f",
    )
    assert "int" in rows[0].problem
    assert "ref_code" in rows[1].problem
    assert "custom_code" in rows[2].problem
    assert rows[3].key == "-/row 4"


def test_what_json_of_python_may_hold_but_ours_cannot_carry(entry: Entry) -> None:
    data = lines(entry(1, "s = '\ud800'", score=float("nan"), big=10**40)).replace(b"\n", b"\r\n")
    (row,) = read_rows(b"\xef\xbb\xbf" + data, "f")
    assert row.claims["score_default"] is None
    assert row.candidate == "s = '?'"
    assert row.extra["big"] == str(10**40)


def test_a_second_candidate_of_a_task_gets_its_own_key(entry: Entry) -> None:
    rows = read_rows(lines(entry(1, "a"), entry(1, "b"), entry(1, "c")), "f")
    assert [row.key for row in rows] == ["1/1", "1/1#2", "1/1#3"]


def test_the_field_of_the_kernel_can_be_named(entry: Entry) -> None:
    data = lines(entry(1, "a", cuda_graph_code="graph"))
    assert read_rows(data, "f", code="cuda_graph_code")[0].candidate == "graph"
    assert "no_such" in read_rows(data, "f", code="no_such")[0].problem
    other = lines({"level_id": 1, "task_id": 2, "code": "c"})
    found = read_rows(other, "f", reference_of=lambda level, task: f"reference of {level}/{task}")
    assert (found[0].candidate, found[0].reference) == ("c", "reference of 1/2")


@pytest.mark.parametrize(
    "data", [b"", b"  \n", b"[1, 2", b"plain text\nmore\n", b"{}", b"3", b'{"a": {"b": 1}}', b"[]"]
)
def test_what_holds_no_kernels_at_all_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(UsageProblem) as refused:
        read_rows(data, "my-file")
    assert str(refused.value).startswith("my-file") and "\n" not in str(refused.value)


@given(st.binary(max_size=200))
def test_no_bytes_bring_the_reader_down(data: bytes) -> None:
    with contextlib.suppress(UsageProblem):
        read_rows(data, "f")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["level_id", "task_id", "ref_code", "custom_code", "score", "x"]), json_values))
def test_any_object_becomes_a_row_or_a_refusal(value: dict[str, Any]) -> None:
    try:
        rows = read_rows(json.dumps(value).encode(), "f")
    except UsageProblem:
        return
    assert all("/" not in row.level and "#" not in row.task for row in rows)


def test_claims_are_positive_finite_numbers() -> None:
    good = [claim(v) for v in (1, 2.5, "3.75", " 1.2x ", "1e2")]
    assert good == [1.0, 2.5, 3.75, 1.2, 100.0]
    bad: tuple[Any, ...] = (None, True, 0, -1, float("inf"), float("nan"), "None", "", [], 10**400)
    assert [claim(v) for v in bad] == [None] * len(bad)


def test_no_text_of_the_file_steers_a_terminal(entry: Entry) -> None:
    value = {**entry(1, "x"), "task_id": "\x1b[2J7\x07", "name": "a\rb\u202ec", "score_\x1b]0;": 2.0}
    (row,) = read_rows(json.dumps(value).encode(), "f")
    assert (row.task, row.name) == ("[2J7", "a b c")
    assert "score_ ]0;" in row.claims
    outcome = Outcome(row.key, 1, "1", row.task, "FAILED", row.claims, reason="\x1b[31mred\nnext")
    assert all(c.isprintable() for c in line(outcome, "score_default"))


def test_people_count_two_before_ten() -> None:
    assert sorted(["10", "2", "1b", "1"], key=natural) == ["1", "1b", "2", "10"]
