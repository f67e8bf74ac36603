"""One bench on several cores."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.benching.refereeing import Refereed, Run, load, save
from workbench.benching.side_by_side import drive, gather, merged, part, shares, usable_cores
from workbench.benching.trials import Trial, find_trials, parse
from workbench.errors import UsageProblem

ROOT = Path(__file__).parents[2]


def trial(name: str, task: str) -> Trial:
    made = parse(Path(name), f"# exploit: 1 x\n# task: {task}\n# expect: WRONG\n")
    assert made is not None
    return made


def run(name: str, number: int) -> Run:
    return Run("exploit", name, "s", number, "WRONG", [], None, "", 1.0)


@given(st.lists(st.sampled_from("abc"), max_size=40), st.integers(1, 17))
def test_every_trial_is_in_one_share_and_none_has_much_more(tasks: list[str], count: int) -> None:
    trials = [trial(f"{i}.py", task) for i, task in enumerate(tasks)]
    split = shares(trials, count)
    assert sorted(t.name for share in split for t in share) == sorted(t.name for t in trials)
    sizes = [len(share) for share in split]
    assert len(split) <= count and all(sizes) and max(sizes, default=0) - min(sizes, default=0) <= 1
    for share in split:
        assert [t.task for t in share] == sorted(t.task for t in share)


def test_a_run_counts_once_however_many_shares_hold_it() -> None:
    one = Refereed("r", "final", "", [run("a", 0)])
    other = Refereed("r", "final", "bwrap", [run("a", 0), run("b", 0)])
    both = merged(one, [other, other])
    assert [r.name for r in both.runs] == ["a", "b"] and both.sandbox == "bwrap"


def test_what_a_broken_off_call_left_is_taken_in(tmp_path: Path) -> None:
    output = tmp_path / "r.json"
    fresh = load(None, "final")
    save(part(output, 3), msgspec.structs.replace(fresh, runs=[run("a", 0)]))
    kept = gather(output, fresh)
    assert [r.name for r in kept.runs] == ["a"] == [r.name for r in load(output, "final").runs]
    assert list(tmp_path.iterdir()) == [output]


def test_more_jobs_than_cores_are_refused() -> None:
    with pytest.raises(UsageProblem, match="may use"):
        usable_cores(len(os.sched_getaffinity(0)) + 1)


def test_two_cores_judge_real_files_into_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    trials = find_trials([Path("tests/exploits"), Path("tests/controls")], "cpu", "05_*")[:2]
    assert len(trials) == 2
    output = tmp_path / "r.json"
    said: list[str] = []
    cores = sorted(os.sched_getaffinity(0))
    done = drive(trials, 1, load(output, "search"), [], output, [cores[0], cores[-1]], said.append)
    assert sorted(r.name for r in done.runs) == sorted(t.name for t in trials)
    assert load(output, "search").runs == done.runs and [p.name for p in tmp_path.glob("r.json*")] == ["r.json"]
    assert said
