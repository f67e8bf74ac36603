"""What a start pulls in, looked at in fresh interpreters: the linter cannot see what third parties import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from workbench_sessions.synthetic import write_session

HEAVY = ("textual", "torch", "pynvml", "matplotlib", "numpy", "watchfiles", "cupy", "vllm", "openai")


def loaded_after(program: str, home: Path) -> set[str]:
    """Which of HEAVY are in `sys.modules` after `program`."""
    look = f"\nimport sys, json\njson.dump([m for m in {HEAVY!r} if m in sys.modules], sys.__stderr__)"
    environment = {"PATH": "/usr/bin:/bin", "WORKBENCH_HOME": str(home), "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", program + look], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    return set(msgspec.json.decode(done.stderr.splitlines()[-1]))


def command_line(*arguments: str) -> str:
    return (
        "import contextlib, io\nfrom workbench.cli import status\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        f"    code = status({list(arguments)!r})\nassert code == 0, code"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["run", "--help"],
        ["replay", "--help"],
        ["bench", "policies", "--help"],
        ["sessions", "list"],
        ["tasks", "list"],
        ["config", "show"],
    ],
)
def test_quick_commands_load_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    assert loaded_after(command_line(*arguments), tmp_path) == set()


def test_headless_replay_loads_neither_textual_nor_torch(tmp_path: Path) -> None:
    session = write_session(tmp_path / "made-up.wb", candidates=5)
    assert not loaded_after(command_line("replay", str(session), "--no-tui"), tmp_path) & {"textual", "torch"}


def test_doctor_asks_torch_only_in_a_child(tmp_path: Path) -> None:
    program = (
        "from workbench.doctor import examinations\nfrom workbench.places import places\n"
        "from workbench.examining import software\n"
        "software.ran = lambda *a, **k: (1, 'not asked in this test')\n"
        "for one in examinations(places()):\n    assert one()"
    )
    assert not loaded_after(program, tmp_path) & {"torch", "textual"}


@pytest.mark.parametrize(
    ("program", "forbidden"),
    [
        ("import workbench_screens.app", {"torch", "pynvml", "cupy", "vllm"}),
        ("import workbench.display.screen", {"torch", "pynvml", "cupy", "vllm"}),
        ("import workbench_sessions.feed, workbench_sessions.export, workbench_sessions.store", set(HEAVY)),
        ("import workbench_engine.conductor, workbench_engine.__main__", {"textual"}),
        ("import workbench_engine.referee.local, workbench_engine.referee.station", {"textual", "torch"}),
    ],
)
def test_rooms_keep_out_what_they_must(program: str, forbidden: set[str], tmp_path: Path) -> None:
    assert not loaded_after(program, tmp_path) & forbidden
