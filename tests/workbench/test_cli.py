from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from workbench.cli import app
from workbench.commands.control import grants
from workbench_engine.exits import ExitCode
from workbench_sessions.commands import (
    Accept,
    Command,
    Pause,
    Pin,
    Reject,
    Resume,
    SetBudget,
    SetMode,
    Steer,
    Stop,
    SubmitSource,
    UndoDecision,
)
from workbench_sessions.events import (
    Budget,
    BudgetChanged,
    CandidatePinned,
    Event,
    HumanAccepted,
    HumanRejected,
    ModeChanged,
    PhaseChanged,
)
from workbench_sessions.reader import SessionReader

Run = Callable[..., int]

COMMANDS = (
    *("run", "demo", "attach", "replay", "evaluate", "doctor", "diff", "accept", "reject", "undo", "pin", "pause"),
    *("resume", "stop", "budget", "mode", "submit", "steer", "sessions", "tasks", "config", "bench"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["runn"], ExitCode.USAGE, "Did you mean 'run'?"),
        (["run", "softmax_rows", "--polcy", "x"], ExitCode.USAGE, "--policy"),
        (["run", "softmax_row"], ExitCode.USAGE, "did you mean 'softmax_rows'?"),
        (["run", "no/such/task.py"], ExitCode.USAGE, "no such file"),
        (["run", "softmax_rows", "--mode", "manual"], ExitCode.USAGE, "run.mode"),
        (["run", "softmax_rows", "--name", "../x"], ExitCode.USAGE, "--name"),
        (["run", "made-up", "--resume", "--seed", "3"], ExitCode.USAGE, "run.seed"),
        (["replay", "nothing"], ExitCode.USAGE, "no such session"),
        (["attach"], ExitCode.USAGE, "workbench run TASK"),
        (["sessions", "show", "nothing"], ExitCode.USAGE, "no such session"),
        (["evaluate", "softmax_rows", "kernel.rs"], ExitCode.USAGE, "a kernel (.cpp) or a module (.py)"),
        (["evaluate", "softmax_rows", "absent.cpp"], ExitCode.USAGE, "cannot be read"),
        (["tasks", "show", "layernrm"], ExitCode.USAGE, "did you mean 'layernorm'?"),
        (["bench", "tasks", "--policy", "magic"], ExitCode.USAGE, "--policies: no policy 'magic'"),
        (["bench", "tasks", "--tasks", "softmax"], ExitCode.USAGE, "did you mean"),
        (["config", "validate", "absent.toml"], ExitCode.USAGE, "no such file"),
    ],
)
def test_bad_input_is_one_line_and_the_right_status(
    run: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], code: ExitCode, said: str
) -> None:
    assert run(*arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_a_refused_run_leaves_no_session(run: Run, home: Path) -> None:
    run("run", "softmax_row")
    run("run", "softmax_rows", "--mode", "manual")
    assert not list(home.rglob("*.wb"))


def test_sessions_are_listed_shown_exported_and_deleted(
    run: Run, session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("sessions", "list") == 0
    assert "made-up" in capsys.readouterr().out
    assert run("sessions", "show", "made", "--json") == 0
    shown = msgspec.json.decode(capsys.readouterr().out)
    with SessionReader(session) as reader:
        projection = reader.project_at(reader.head_seq())
        events = reader.head_seq()
    assert shown["best"]["id"] == projection.best
    assert shown["verdicts"]["faster"] == projection.counts.faster
    assert run("sessions", "export", "made-up") == 0
    assert len(capsys.readouterr().out.splitlines()) == events
    assert run("sessions", "export", "made-up", "--format", "candidates") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["id"] for row in rows] == list(projection.candidates)
    assert run("sessions", "delete", "made-up") == ExitCode.USAGE
    assert "--yes" in capsys.readouterr().err
    assert session.exists()
    assert run("sessions", "delete", "made-up", "--yes") == 0
    assert not session.exists()


def test_a_copy_can_be_replayed_from_its_path(run: Run, session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sessions", "export", "made-up", "--format", "session") == ExitCode.USAGE
    capsys.readouterr()
    assert run("sessions", "export", "made-up", "--format", "session", "-o", "copy.wb") == 0
    assert run("replay", "copy.wb", "--json") == 0
    assert msgspec.json.decode(capsys.readouterr().out)["task"] == "softmax_rows"


def test_headless_replay_tells_every_verdict_on_stderr(
    run: Run, session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("replay", "made-up", "--no-tui") == 0
    out, err = capsys.readouterr()
    with SessionReader(session) as reader:
        projection = reader.project_at(reader.head_seq())
    for row in projection.candidates.values():
        assert (row.verdict is not None) == (f" {row.id}  " in err)
    assert projection.best is not None and projection.best in out
    assert "\x1b" not in out + err


def test_diff_shows_what_differs(run: Run, session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SessionReader(session) as reader:
        p = reader.project_at(reader.head_seq())
    first, *others = p.candidates.values()
    other = next(row for row in others if row.source_sha256 != first.source_sha256)
    assert run("diff", "made-up", first.id, other.id) == 0
    assert capsys.readouterr().out.startswith(f"--- {first.id}\n+++ {other.id}\n")
    assert run("diff", "made-up", "reference", "zzz") == ExitCode.USAGE


def test_deciding_without_a_running_engine_is_answered_by_one_that_only_answers(
    run: Run, session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SessionReader(session) as reader:
        p = reader.project_at(reader.head_seq())
    free = [row for row in p.candidates.values() if row.decision is None and row.verdict == "FASTER"]
    assert run("reject", "made-up", free[0].id, "--reason", "too clever") == 0
    with SessionReader(session) as reader:
        row = reader.project_at(reader.head_seq()).candidates[free[0].id]
    assert (row.decision, row.decision_reason) == ("rejected", "too clever")
    assert run("reject", "made-up", free[0].id) == ExitCode.FAILED
    assert "rejected already" in capsys.readouterr().err
    assert run("pause", "made-up") == ExitCode.FAILED
    assert "nothing runs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wish", "fact", "granted"),
    [
        (Accept("c1"), HumanAccepted("c1", path="/k.cpp"), True),
        (Accept("c1"), HumanAccepted("c2"), False),
        (Accept("c1"), HumanRejected("c1"), False),
        (Reject("c1"), HumanRejected("c1"), True),
        (UndoDecision("c1"), HumanAccepted("c1"), False),
        (Pin("c1", True), CandidatePinned("c1", True), True),
        (Pin("c1", True), CandidatePinned("c1", False), False),
        (Pause(), PhaseChanged("paused"), True),
        (Resume(), PhaseChanged("paused"), False),
        (Stop(), PhaseChanged("stopping"), True),
        (SetBudget(Budget(evaluations=3)), BudgetChanged(Budget(evaluations=3)), True),
        (SetBudget(Budget(evaluations=3)), BudgetChanged(Budget(evaluations=4)), False),
        (SetMode("review"), ModeChanged("review"), True),
        (SetMode("review"), ModeChanged("auto"), False),
        (Steer("x"), PhaseChanged("running"), False),
        (SubmitSource("x"), PhaseChanged("running"), False),
    ],
)
def test_only_the_fact_asked_for_answers_a_wish(wish: Command, fact: Event, granted: bool) -> None:
    assert grants(wish, fact) is granted


def test_tasks_and_their_spaces_are_listed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tasks", "list", "--json") == 0
    rows = {row["name"]: row for row in msgspec.json.decode(capsys.readouterr().out)}
    assert rows["softmax_rows"]["space"] >= 100_000
    assert run("tasks", "show", "softmax_rows", "--json") == 0
    shown = msgspec.json.decode(capsys.readouterr().out)
    assert "class Model" in shown["source"]
    assert shown["space"]["size"] == rows["softmax_rows"]["space"]


def test_config_shows_where_a_value_is_from(
    run: Run, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("workbench.toml").write_text("[run]\nseed = 7\n")
    monkeypatch.setenv("WORKBENCH_RUN_POLICY", "random")
    assert run("config", "show", "--json") == 0
    rows = {row["key"]: row for row in msgspec.json.decode(capsys.readouterr().out)}
    assert (rows["run.seed"]["value"], rows["run.seed"]["origin"]) == (7, "workbench.toml")
    assert rows["run.policy"]["origin"] == "WORKBENCH_RUN_POLICY"
    assert run("config", "path") == 0
    assert str(home) in capsys.readouterr().out


def test_a_closed_pipe_is_no_error(session: Path, home: Path) -> None:
    argv = [sys.executable, "-m", "workbench", "sessions", "export", "made-up"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert said == b""
