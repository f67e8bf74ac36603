from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from workbench.auditing.journal import About, Journal
from workbench.auditing.rows import Outcome
from workbench.errors import UsageProblem

ABOUT = About("f.json", "abc", {"profile": "final", "set": ""}, "a processor", "2.13", "0.1")


def outcome(task: int) -> Outcome:
    return Outcome(key=f"1/{task}", number=task, level="1", task=str(task), state="SAME", speedup=1.0, d=[0.0, 0.1])


def test_what_was_judged_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    with Journal(tmp_path / "a", ABOUT) as journal:
        journal.begin("1/1")
        journal.add(outcome(1))
        journal.begin("1/2")
    with Journal(tmp_path / "a", ABOUT) as again:
        assert again.outcomes == [outcome(1)]
        assert again.done() == {"1/1"}
        assert again.attempts("1/2") == 1


def test_a_line_cut_in_half_by_a_kill_is_dropped_and_overwritten(tmp_path: Path) -> None:
    with Journal(tmp_path, ABOUT) as journal:
        journal.add(outcome(1))
    with (tmp_path / "results.jsonl").open("ab") as file:
        file.write(b'{"key":"1/2","number":2,"lev')
    with Journal(tmp_path, ABOUT) as journal:
        assert journal.outcomes == [outcome(1)]
        journal.add(outcome(2))
    with Journal(tmp_path, ABOUT) as journal:
        assert journal.outcomes == [outcome(1), outcome(2)]


def test_a_later_outcome_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    slow = replace(outcome(1), state="NOT REFEREED")
    with Journal(tmp_path, ABOUT) as journal:
        journal.begin("1/1")
        journal.add(slow)
        assert (journal.done(), journal.done(retry=True)) == ({"1/1"}, set())
        journal.begin("1/1")
        journal.add(outcome(1))
    with Journal(tmp_path, ABOUT) as journal:
        assert journal.outcomes == [outcome(1)]
        assert journal.done(retry=True) == {"1/1"}
        assert journal.attempts("1/1") == 0


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(ABOUT, input_sha256="def"), "another input"),
        (replace(ABOUT, settings={"profile": "search", "set": ""}), r"--profile \(final, now search\)"),
        (replace(ABOUT, settings={"profile": "final", "set": "batch_size=4"}), "--set"),
        (replace(ABOUT, cpu="another one"), "processor"),
        (replace(ABOUT, torch="3.0"), "torch"),
    ],
)
def test_results_of_another_audit_are_never_mixed_in(tmp_path: Path, other: About, said: str) -> None:
    with Journal(tmp_path, ABOUT) as journal:
        journal.add(outcome(1))
    with pytest.raises(UsageProblem, match=said) as refused:
        Journal(tmp_path, other)
    assert "--fresh" in str(refused.value)
    with Journal(tmp_path, other, fresh=True) as journal:
        assert journal.outcomes == []


def test_a_folder_of_other_files_is_left_alone_even_with_fresh(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    for fresh in (False, True):
        with pytest.raises(UsageProblem, match="other files"):
            Journal(tmp_path, ABOUT, fresh)
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]


def test_two_audits_never_write_to_one_folder(tmp_path: Path) -> None:
    with Journal(tmp_path, ABOUT), pytest.raises(UsageProblem, match="another audit"):
        Journal(tmp_path, ABOUT)
    with Journal(tmp_path, ABOUT):
        pass


def test_a_damaged_line_in_the_middle_is_said_not_swallowed(tmp_path: Path) -> None:
    with Journal(tmp_path, ABOUT) as journal:
        journal.add(outcome(1))
    text = (tmp_path / "results.jsonl").read_bytes()
    (tmp_path / "results.jsonl").write_bytes(b"garbage\n" + text)
    with pytest.raises(UsageProblem, match=r"results\.jsonl"):
        Journal(tmp_path, ABOUT)
