"""The parts of a collection that need no judge."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from workbench.collecting.attempts import Attempt, Goal, data_set, example, same_code, successes, wants_more
from workbench.collecting.journal import ABOUT, ATTEMPTS, EXAMPLES, Journal
from workbench.collecting.remembering import Remembering, kept_traffic, spent_on, traffic_file
from workbench.collecting.table import columns, write_table
from workbench.errors import UsageProblem
from workbench_engine.llm.contract import Choice, Completion, Message, OnChunk, Request

VERDICTS = ("", "FASTER", "SAME", "SLOWER", "AMBIGUOUS", "WRONG", "FAILED", "CHEATING")


def attempt(number: int, verdict: str = "SAME", code: str = "", task: str = "t", model: str = "m") -> Attempt:
    return Attempt(
        task=task,
        model=model,
        number=number,
        seed=number,
        prompt="p",
        prompt_sha256="h",
        reference="r",
        kind="kernel",
        code=code or f"code {number}",
        verdict=verdict,
        machine={"cpu": "c", "os": "o", "torch": "2", "compiler": "g++"},
    )


@given(st.lists(st.tuples(st.sampled_from(VERDICTS), st.integers(1, 4)), max_size=25), st.integers(1, 20))
def test_only_different_and_correct_codes_count(said: list[tuple[str, int]], tries: int) -> None:
    made = [attempt(i, verdict, f"code {name}") for i, (verdict, name) in enumerate(said)]
    kept = successes(made)
    assert {one.verdict for one in kept} <= {"FASTER", "SAME", "SLOWER", "AMBIGUOUS"}
    assert len({one.code for one in kept}) == len(kept)
    correct = {name for verdict, name in said if verdict not in ("", "WRONG", "FAILED", "CHEATING")}
    assert len(kept) == len(correct)
    goal = Goal(tries, 2)
    assert wants_more(made, goal) == (len(made) < tries and len(correct) < 2)
    assert wants_more([], Goal()) and Goal() == Goal(20, 2)


def test_the_order_does_not_depend_on_who_answered_first() -> None:
    made = [attempt(n, model=m, task=t) for n in (1, 2) for m in ("b", "a") for t in ("u", "t")]
    assert data_set(made) == data_set(list(reversed(made)))
    # The same code of two models is an example of each.
    assert len(data_set([attempt(1, code="x"), attempt(1, code="x", model="n")])) == 2


def test_a_verdict_is_taken_from_the_attempt_that_was_judged() -> None:
    judged, again = attempt(1, "WRONG", "x\n"), replace(attempt(2, "WRONG", "x"), repeats="m/1")
    assert same_code([again, judged], "t", "x ") is judged
    assert same_code([judged], "u", "x") is None
    assert same_code([attempt(1, "", "x")], "t", "x") is None


ABOUTS: dict[str, Any] = {"seed": 0, "profile": "search"}
MODELS: dict[str, dict[str, Any]] = {"m": {"temperature": 0.8}}


def test_half_a_line_is_cut_off_and_the_rest_goes_on(tmp_path: Path) -> None:
    with Journal(tmp_path / "set", ABOUTS, MODELS) as journal:
        journal.add(attempt(1))
        journal.add(attempt(2))
    path = tmp_path / "set" / ATTEMPTS
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 3])
    with Journal(tmp_path / "set", ABOUTS, MODELS) as journal:
        assert [one.number for one in journal.attempts] == [1, 2]
        journal.add(attempt(3))
        assert journal.save()[0] == 3
    assert [json.loads(line)["number"] for line in path.read_bytes().splitlines()] == [1, 2, 3]
    rows = [json.loads(line) for line in (tmp_path / "set" / EXAMPLES).read_text().splitlines()]
    assert tuple(rows[0]) == columns()
    assert rows[0]["machine_compiler"] == "g++"


def test_a_folder_killed_before_its_first_attempt_can_be_used(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "collect.lock").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with Journal(folder, ABOUTS, MODELS), pytest.raises(UsageProblem, match="another collection writes there"):
        Journal(folder, ABOUTS, MODELS)
    with pytest.raises(UsageProblem, match="holds other files"):
        Journal(tmp_path / "other", ABOUTS, MODELS)
    (folder / ABOUT).write_text("{")
    with pytest.raises(UsageProblem, match=r"collect\.json: cannot be read"):
        Journal(folder, ABOUTS, MODELS)


def test_models_may_join_and_none_may_change(tmp_path: Path) -> None:
    Journal(tmp_path / "set", ABOUTS, MODELS).__exit__()
    Journal(tmp_path / "set", ABOUTS, {"n": {"temperature": 0.1}}).__exit__()
    kept = json.loads((tmp_path / "set" / ABOUT).read_text())["models"]
    assert kept == {"m": {"temperature": 0.8}, "n": {"temperature": 0.1}}
    with pytest.raises(UsageProblem, match=r"n: temperature = 0\.1, now 0\.2"):
        Journal(tmp_path / "set", ABOUTS, {"n": {"temperature": 0.2}})
    with pytest.raises(UsageProblem, match="seed = 0, now 1"):
        Journal(tmp_path / "set", ABOUTS | {"seed": 1}, MODELS)


class Paid:
    """A model whose every answer costs 0.25, after a try that cost 0.5."""

    def __init__(self) -> None:
        self.asked = 0

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        self.asked += 1
        return Completion(
            (Choice(f"answer {self.asked}"),), 7, 2, cost=0.25, endpoint="e", wasted_tokens=3, wasted_cost=0.5
        )

    async def aclose(self) -> None:
        self.asked = -1


def test_a_remembered_answer_keeps_what_was_paid_for_it(tmp_path: Path) -> None:
    path, inner = traffic_file(tmp_path, "org/model: 7b"), Paid()
    assert path.parent == tmp_path / "traffic" and kept_traffic(path) == []

    async def ask() -> list[Completion]:
        model = Remembering(inner, path)
        return [await model.complete(Request((Message("user", "q"),), seed=s)) for s in (1, 2)]

    first = asyncio.run(ask())
    assert asyncio.run(ask()) == first and inner.asked == 2
    assert first[0].cost == 0.25 and first[0].endpoint == "e"
    spent = spent_on(kept_traffic(path))
    assert (spent.money, spent.tokens, spent.requests, spent.unpriced) == (1.5, 24, 2, 0)
    # Half a line of a killed writer is no answer.
    path.write_bytes(path.read_bytes()[:-20])
    assert asyncio.run(ask())[0] == first[0] and inner.asked == 3
    path.write_bytes(b'{"request"')
    assert kept_traffic(path) == []


def test_the_table_holds_the_rows_with_the_same_types_whatever_they_hold(tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: no .parquet is written")
    rows = [example(replace(attempt(1), cost=None, findings=["info: a"])), example(attempt(2))]
    assert write_table(tmp_path / "a.parquet", rows) and write_table(tmp_path / "b.parquet", [])
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.to_pylist() == rows
    assert str(table.schema.field("cost").type) == "double"
    assert parquet.read_schema(tmp_path / "b.parquet").equals(table.schema)


def test_without_pyarrow_no_older_table_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_text("of an older data set")
    assert not write_table(tmp_path / "a.parquet", [])
    assert not (tmp_path / "a.parquet").exists()
