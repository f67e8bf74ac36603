from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.workbench.auditing.conftest import REFERENCE, candidate

from workbench.auditing.journal import About, Journal
from workbench.auditing.refereeing import Care
from workbench.auditing.rows import Outcome, Row
from workbench.auditing.running import audit, chosen, core_pairs
from workbench.errors import UsageProblem

ABOUT = About("f", "s", {}, "", "", "")


def row(level: str, task: str, code: str | None = None, sample: str = "", name: str = "") -> Row:
    return Row(1, level, task, REFERENCE, code, sample=sample, name=name)


ROWS = [row("1", "2"), row("1", "12"), row("2", "12", sample="2"), row("2", "1", name="Conv")]


@pytest.mark.parametrize(
    ("only", "keys"),
    [
        ("", ["1/2", "1/12", "2/12#2", "2/1"]),
        ("1", ["1/2", "1/12"]),
        ("*/12", ["1/12", "2/12#2"]),
        ("2/12#2, 1/2", ["1/2", "2/12#2"]),
        ("*_Conv", ["2/1"]),
    ],
)
def test_rows_are_chosen_by_level_task_sample_or_name(only: str, keys: list[str]) -> None:
    assert [r.key for r in chosen(ROWS, only)] == keys
    assert [r.key for r in chosen(ROWS, only, limit=1)] == keys[:1]


def test_choosing_nothing_is_said_with_what_there_is() -> None:
    with pytest.raises(UsageProblem, match="from 1/2 to 2/1"):
        chosen(ROWS, "9/9")


def test_jobs_never_share_a_core() -> None:
    have = sorted(os.sched_getaffinity(0))
    assert core_pairs(1) == [tuple(have)]
    jobs = len(have) // 2
    used = [core for pair in core_pairs(jobs) for core in pair] if jobs > 1 else []
    assert len(used) == len(set(used))
    with pytest.raises(UsageProblem, match="--jobs"):
        core_pairs(max(2, len(have)))


class Heard:
    def __init__(self) -> None:
        self.rows: list[str] = []

    def begun(self, row: Row) -> None:
        raise AssertionError("nothing here is for the referee")

    def ended(self, outcome: Outcome) -> None:
        self.rows.append(f"{outcome.key} {outcome.state}")


def run(rows: list[Row], journal: Journal, cache: Path) -> list[str]:
    heard = Heard()
    asyncio.run(audit(rows, journal, Care(), cache, {}, heard))
    return heard.rows


def test_rows_without_code_need_no_referee_and_are_done_once(tmp_path: Path) -> None:
    rows = [row("1", "1"), row("1", "2", "None"), row("1", "3", "x = (")]
    with Journal(tmp_path / "a", ABOUT) as journal:
        assert run(rows[:2], journal, tmp_path) == ["1/1 NO CODE", "1/2 NO CODE"]
    with Journal(tmp_path / "a", ABOUT) as journal:
        assert run(rows, journal, tmp_path) == ["1/3 NOT PYTHON"]


def test_a_row_that_ended_the_audit_twice_is_left_out(tmp_path: Path) -> None:
    killer = row("1", "1", candidate("return x"))
    for _ in range(2):
        with Journal(tmp_path / "a", ABOUT) as journal:
            journal.begin(killer.key)
    with Journal(tmp_path / "a", ABOUT) as journal:
        assert run([killer], journal, tmp_path) == ["1/1 NOT REFEREED"]
        assert journal.outcomes[0].findings[0].code == "not-refereed"
