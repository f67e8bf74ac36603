"""Exploits and controls: their headers, the table they fold into, and a few of them through the real referee."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.benching.others import Checkers
from workbench.benching.refereed import accepted, cells, fold, sentence, summary
from workbench.benching.refereeing import Other, Raised, Refereed, Run, Setting, drive, load, missing, save
from workbench.benching.tables import markdown_table
from workbench.benching.trials import PASS, Trial, find_trials, header, parse, task_file
from workbench.errors import EnvironmentProblem, UsageProblem
from workbench_engine.tasks.catalogue import bundled_names

HERE = Path(__file__).parent.parent
FOLDERS = [HERE / "exploits", HERE / "controls"]
EXPLOIT = """\
// flags: -O3
// exploit: 05 cache by pointer
// task: softmax_rows
// expect: CHEATING|WRONG stale-pointer|replayed-output
// mechanism: a map from the address to an answer
#include <cmath>
// task: not_this_one
"""
CONTROL = (
    "# control: of 05 a workspace\n# task: softmax_rows\n# expect: pass\n# mechanism: scratch memory\nimport torch\n"
)


def trial(text: str, name: str = "05_cache.cpp") -> Trial:
    found = parse(Path(name), text)
    assert found is not None
    return found


def run(of: Trial, verdict: str, *codes: str, number: int = 0, severity: str = "cheat") -> Run:
    return Run(of.role, of.name, of.sha256, number, verdict, [Raised(c, severity, "") for c in codes], None, "", 1.0)


def test_a_header_ends_where_the_code_begins() -> None:
    found = trial(EXPLOIT)
    assert (found.role, found.row, found.title, found.task) == ("exploit", 5, "cache by pointer", "softmax_rows")
    assert found.verdicts == ("CHEATING", "WRONG")
    assert found.findings == ("stale-pointer", "replayed-output")
    assert found.kind == "kernel"
    assert "flags" not in header(EXPLOIT)


def test_pass_stands_for_every_verdict_of_a_right_answer() -> None:
    found = trial(CONTROL, "05_cache.py")
    assert (found.role, found.row, found.kind) == ("control", 5, "module")
    assert found.verdicts == PASS
    assert parse(Path("naive.py"), "import torch\n") is None


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("# expect: CHEATED stale-pointer", "CHEATED"),
        ("# expect: CHEATING stale-pointr", "stale-pointer"),
        ("# exploit: cache", "names no row"),
        ("# naive: perhaps", "perhaps"),
        ("# task:", "task"),
    ],
)
def test_a_bad_header_is_one_line_that_says_which(line: str, word: str) -> None:
    key = line.split(":")[0]
    text = "\n".join(
        [line, *(old for old in CONTROL.replace("control", "exploit").splitlines() if old[: len(key)] != key)]
    )
    with pytest.raises(UsageProblem, match=word) as raised:
        parse(Path("some.py"), text)
    assert "\n" not in str(raised.value)


@given(st.text())
def test_no_text_breaks_the_reading_of_a_header(text: str) -> None:
    assert set(header(text)) <= {"exploit", "control", "task", "expect", "mechanism", "backend", "naive"}


def test_what_makes_a_claim_needs_the_finding_and_a_refusal_only_is_named_by_it() -> None:
    cheat = trial(EXPLOIT)
    assert cheat.caught("WRONG", []) and not cheat.names("WRONG", [])
    assert cheat.caught("CHEATING", ["stale-pointer"]) and cheat.names("CHEATING", ["library", "stale-pointer"])
    assert not cheat.caught("FASTER", ["stale-pointer"])
    labelled = trial(CONTROL.replace("control: of 05", "exploit: 18").replace("pass", "pass library"), "18_library.py")
    assert labelled.caught("SAME", ["library"])
    assert not labelled.caught("SAME", ["precision"])
    assert labelled.caught("SLOWER", [])
    assert labelled.names("FAILED", [])


def test_the_gravest_finding_comes_first_and_advice_not_at_all() -> None:
    cheat = trial(EXPLOIT)
    found = [Raised("advice", "label", ""), Raised("library", "label", ""), Raised("hidden-work", "cheat", "")]
    made = Run("exploit", cheat.name, cheat.sha256, 0, "CHEATING", [*found, *found], None, "", 1.0)
    assert made.codes == ["hidden-work", "library"]


def test_one_slip_or_one_flag_is_enough_to_fail() -> None:
    cheat, honest = trial(EXPLOIT), trial(CONTROL, "05_cache.py")
    sound = Refereed(runs=[run(cheat, "CHEATING", "stale-pointer"), run(honest, "SAME")])
    assert summary(fold([cheat, honest], sound)).sound
    slipped = Refereed(runs=[*sound.runs, run(cheat, "FASTER", number=1)])
    found = summary(fold([cheat, honest], slipped))
    assert (found.caught, found.caught_runs, found.exploit_runs, found.sound) == (0, 1, 2, False)
    flagged = Refereed(runs=[*sound.runs, run(honest, "SAME", "hidden-work", number=1)])
    assert summary(fold([cheat, honest], flagged)).false_alarms == 1
    warned = Refereed(runs=[*sound.runs, run(honest, "SAME", "extra-threads", number=1, severity="warning")])
    assert summary(fold([cheat, honest], warned)).sound


def test_a_file_without_a_run_is_not_called_caught() -> None:
    assert not summary(fold([trial(EXPLOIT)], Refereed())).sound


def test_runs_of_an_older_text_do_not_count() -> None:
    old, new = trial(EXPLOIT), trial(EXPLOIT + "// changed\n")
    results = Refereed(runs=[run(old, "CHEATING", "stale-pointer")])
    assert missing([new], 2, results.runs) == [(new, 0), (new, 1)]
    assert fold([new], results)[0].runs == 0
    assert missing([old], 1, results.runs) == []


def test_the_table_counts_what_differs_between_runs() -> None:
    cheat = trial(EXPLOIT)
    results = Refereed(
        runs=[run(cheat, "CHEATING", "stale-pointer"), run(cheat, "WRONG", number=1), run(cheat, "WRONG", number=2)],
        naive=[Other("exploit", cheat.name, cheat.sha256, True, 812.4)],
        kernelbench=[Other("exploit", cheat.name, cheat.sha256, None, note="n/a")],
    )
    [line] = fold([cheat], results)
    row = cells(line)
    assert row == [
        "05_cache.cpp",
        "softmax_rows",
        "WRONG 2×, CHEATING 1×",
        "stale-pointer 1×",
        "3/3",
        "1/3",
        "correct 812×",
        "n/a",
    ]
    assert "caught 1 of 1 exploits (3/3 runs, the mechanism named in 1)" in sentence(summary([line]))
    assert "\\|" not in markdown_table(["a"] * len(row), [row])


@pytest.mark.parametrize(
    ("correct", "errors", "through"),
    [(True, [], True), (True, ["try"], False), (False, [], False), (None, [], None), (None, ["try"], False)],
)
def test_a_check_accepts_what_it_neither_refuses_nor_calls_wrong(
    correct: bool | None, errors: list[str], through: bool | None
) -> None:
    assert accepted(Other("exploit", "x", "", correct, None, errors)) is through


def test_results_are_kept_and_only_of_this_referee(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "referee.json"
    results = msgspec.structs.replace(load(None, "final"), runs=[run(trial(EXPLOIT), "WRONG", "stale-pointer")])
    save(path, results)
    assert load(path, "final") == results
    with pytest.raises(UsageProblem, match="--profile final"):
        load(path, "search")
    save(path, msgspec.structs.replace(results, referee="older"))
    with pytest.raises(UsageProblem, match="another version"):
        load(path, "final")
    path.write_bytes(msgspec.json.encode({"runs": 3}))
    with pytest.raises(UsageProblem, match="choose another file"):
        load(path, "final")
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        save(path / "below", results)


def test_only_takes_patterns_and_parts_of_names() -> None:
    names = [t.name for t in find_trials(FOLDERS, "cpu", "05_cache_by_pointer*")]
    assert sorted(names) == sorted(2 * ["05_cache_by_pointer.cpp", "05_cache_by_pointer.py"])
    assert {t.role for t in find_trials(FOLDERS, "cpu", "controls/05")} == {"control"}
    with pytest.raises(UsageProblem, match="matches no file"):
        find_trials(FOLDERS, "cpu", "nothing-like-it")
    with pytest.raises(UsageProblem, match="no such folder"):
        find_trials([HERE / "absent"], "cpu", "")


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_every_file_says_what_it_is_and_names_a_task_that_exists(backend: str) -> None:
    trials = find_trials(FOLDERS, backend, "")
    count = sum(p.suffix in (".py", ".cpp") for folder in FOLDERS for p in (folder / backend).iterdir())
    assert len(trials) == count
    for one in trials:
        assert one.backend == backend, one.path
        assert one.mechanism, one.path
        assert task_file(one.task, FOLDERS) != one.task or one.task in bundled_names(), one.path
        assert one.row is None or one.name.startswith(f"{one.row:02d}_"), one.path


def test_rows_of_the_catalogue_have_cheat_and_twin() -> None:
    """Rows that need a GPU have theirs in the folder `cuda`; 30 and 31 are matters of the timing protocol."""
    trials = [t for backend in ("cpu", "cuda") for t in find_trials(FOLDERS, backend, "")]
    assert set(range(1, 39)) - {30, 31} == {t.row for t in trials if t.role == "exploit" and t.row is not None}
    twins = {t.row for t in trials if t.role == "control" and t.row is not None}
    # No honest use: overwriting expected values, a degenerate task, a seed known beforehand.
    assert set(range(1, 39)) - {10, 20, 25, 28, 30, 31} == twins


QUICK = "exploits/05_cache_by_pointer.cpp,exploits/08_stale_memory.cpp,controls/05_cache_by_pointer.cpp"


def test_cheats_are_caught_and_their_twins_pass(tmp_path: Path) -> None:
    trials = find_trials(FOLDERS, "cpu", QUICK)
    setting = Setting(FOLDERS, tmp_path / "builds", profile="search")
    said: list[str] = []
    results = drive(trials, 1, load(None, "search"), setting, tmp_path / "out.json", said.append)
    lines = fold(trials, results)
    assert all(line.as_expected for line in lines), said
    assert load(tmp_path / "out.json", "search") == results
    again = drive(trials, 1, results, setting, tmp_path / "out.json", said.append)
    assert again == results
    assert len(said) == len(trials)


def test_the_naive_check_is_fooled_where_the_referee_is_not(tmp_path: Path) -> None:
    checkers = Checkers(tmp_path / "builds", False, None)
    [cheat] = find_trials(FOLDERS[:1], "cpu", "05_cache_by_pointer.cpp")
    [wrong] = find_trials(FOLDERS[:1], "cpu", "36_exit_as_pass.cpp")
    found = checkers.naive(cheat, cheat.task)
    assert found.correct is True
    assert found.speedup is not None
    assert found.speedup > 0
    assert checkers.naive(wrong, wrong.task).correct is True
    [spoiled] = [trial(wrong.text.replace("_exit(0)", "_exit(3)"), "36_exit_as_pass.cpp")]
    assert checkers.naive(spoiled, spoiled.task).correct is False


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.skipif("WORKBENCH_SLOW" not in os.environ, reason="half an hour: make test-referee")
def test_every_cheat_is_caught_and_every_twin_passes(tmp_path: Path) -> None:
    trials = find_trials(FOLDERS, "cpu", "")
    results = drive(trials, 1, Refereed(), Setting(FOLDERS, tmp_path / "builds"), None, print)
    slipped = [
        (line.trial.role, line.trial.name, line.verdicts) for line in fold(trials, results) if not line.as_expected
    ]
    assert slipped == []


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.skipif("WORKBENCH_SLOW" not in os.environ, reason="a quarter of an hour: make test-referee")
def test_cheats_fool_the_naive_check_unless_they_say_otherwise(tmp_path: Path) -> None:
    checkers = Checkers(tmp_path / "builds", False, None)
    trials = [t for t in find_trials(FOLDERS[:1], "cpu", "") if t.naive == "fooled"]
    honest = [t.name for t in trials if not checkers.naive(t, task_file(t.task, FOLDERS)).correct]
    assert honest == []
