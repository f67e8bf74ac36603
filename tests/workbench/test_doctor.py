from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from workbench import doctor
from workbench.examining import machine, screen, software
from workbench.examining.finding import Examined, fail, ok, ran
from workbench.places import Places
from workbench.terminal import Terminal
from workbench_engine.exits import ExitCode
from workbench_engine.sandbox.level import SandboxUnavailable

Run = Callable[..., int]


def test_a_line_has_the_state_as_a_word_and_the_remedy() -> None:
    assert doctor.line(fail("g++", "not found", "install it")).split() == [
        "fail",
        "g++",
        "not",
        "found;",
        "install",
        "it",
    ]
    assert "fail" not in doctor.line(ok("python", "3.11"))


def test_only_a_failure_changes_the_exit_status(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[Examined] = [ok("a", "fine"), Examined("b", "warn", "so so", "look")]
    monkeypatch.setattr(doctor, "examine", lambda where: iter(found))
    assert run("doctor", "--json") == ExitCode.OK
    assert [one["state"] for one in msgspec.json.decode(capsys.readouterr().out)] == ["ok", "warn"]
    found.append(fail("c", "gone", "bring it back"))
    assert run("doctor") == ExitCode.ENVIRONMENT


def test_a_missing_sandbox_fails_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise SandboxUnavailable("sandbox: bubblewrap is not installed; remedy: install it, or run with --trust")

    monkeypatch.setattr(software, "probe", absent)
    (one,) = software.sandbox()
    assert (one.state, one.said, one.remedy) == (
        "fail",
        "bubblewrap is not installed",
        "install it, or run with --trust",
    )


def test_a_missing_compiler_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    (one,) = software.compiler()
    assert one.state == "fail" and "install" in one.remedy


def test_a_folder_that_cannot_be_made_fails(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    where = Places(blocked / "sessions", tmp_path, tmp_path / "cache", tmp_path / "state")
    states = {one.subject: one.state for one in machine.folders(where)}
    assert states["sessions folder"] == "fail"
    assert states["cache folder"] == "ok"
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_a_small_terminal_is_a_warning_and_none_is_not() -> None:
    tty = Terminal(True, True, True, "xterm-256color")
    assert screen.terminal(tty, (60, 20), {})[0].state == "warn"
    assert screen.terminal(tty, (80, 24), {})[0].state == "ok"
    none = screen.terminal(Terminal(False, False, False), (80, 24), {})[0]
    assert none.state == "ok" and "lines" in none.said
    assert "NO_COLOR" in screen.colours(tty, {"NO_COLOR": "1"}).said


def test_programs_that_cannot_run_have_a_status_too() -> None:
    assert ran(["/no/such/program"])[0] == 127
    assert ran(["sleep", "5"], timeout_s=0.05)[0] == 124
