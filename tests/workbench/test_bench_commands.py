"""The benches' command lines: what they refuse, and that their help needs nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench_engine.exits import ExitCode

Run = Callable[..., int]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bench", "mutations", "--tasks", "softmax_row"), "softmax_rows"),
        (("bench", "aa", "--profile", "slow"), "known: search, final"),
        (("bench", "aa", "no_such_task"), "no_such_task"),
        (("bench", "cost", "absent.py"), "no design space"),
        (("run", "softmax_rows", "--reward", "money"), "run.reward"),
    ],
)
def test_wrong_requests_get_one_line(
    run: Run, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert run(*arguments) == ExitCode.USAGE
    error = capsys.readouterr().err.strip()
    assert said in error
    assert len(error.splitlines()) == 1


def test_results_of_something_else_are_not_overwritten(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("kept.json").write_text("{}")
    assert run("bench", "mutations", "--count", "1", "-o", "kept.json") == ExitCode.USAGE
    assert "choose another file" in capsys.readouterr().err
    assert Path("kept.json").read_text() == "{}"


@pytest.mark.parametrize("name", ["mutations", "aa", "cost"])
def test_help_is_light(name: str) -> None:
    code = (
        "import sys\n"
        "from workbench.cli import main\n"
        f"sys.argv = ['workbench', 'bench', '{name}', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'textual', 'tree_sitter'} & set(sys.modules)\n"
        "sys.exit(f'imports {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert name in done.stdout
