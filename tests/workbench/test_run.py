"""The real thing, small: a run in an engine process, and one candidate through the whole referee."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from workbench.benching.against_itself import twin
from workbench_engine.exits import ExitCode
from workbench_sessions.reader import SessionReader

Run = Callable[..., int]
BROKEN = "import torch\nraise RuntimeError('no such luck')\n"
PLAIN = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x) * 2.0


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
"""


def test_a_run_ends_with_its_budget_and_a_result(home: Path) -> None:
    argv = [sys.executable, "-m", "workbench", "run", "softmax_rows", "--policy", "random", "--evaluations", "3"]
    argv += ["--minutes", "0", "--json", "--name", "small"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250)
    assert done.returncode in (ExitCode.OK, ExitCode.BUDGET), done.stderr
    result = msgspec.json.decode(done.stdout)
    verdicts = sum(result["verdicts"][name.lower()] for name in ("FASTER", "SAME", "SLOWER", "AMBIGUOUS"))
    verdicts += sum(result["verdicts"][name] for name in ("wrong", "failed", "cheating"))
    assert verdicts == 3
    assert result["phase"] == "closed"
    assert (result["best"] is not None) == (done.returncode == ExitCode.OK)
    with SessionReader(home / "sessions" / "small.wb") as reader:
        assert len(reader.project_at(reader.head_seq()).candidates) == 3


def test_a_task_that_does_not_import_is_one_line(home: Path) -> None:
    task = Path("broken.py")
    task.write_text(BROKEN)
    argv = [sys.executable, "-m", "workbench", "run", str(task), "--no-tui"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("workbench: ")
    assert "Traceback" not in done.stderr


def test_the_reference_itself_is_judged_correct(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("plain.py").write_text(PLAIN)
    Path("twin.py").write_text(twin(PLAIN))
    Path("wrong.py").write_text(twin(PLAIN.replace("2.0", "2.1")))
    assert run("evaluate", "plain.py", "twin.py", "--json") == ExitCode.OK
    judged = msgspec.json.decode(capsys.readouterr().out)
    assert judged["verdict"]["speedup"] is not None
    assert run("evaluate", "plain.py", "wrong.py") == ExitCode.FAILED
    assert capsys.readouterr().out.startswith("WRONG")


def test_a_task_is_checked_in_the_sandbox(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("plain.py").write_text(PLAIN)
    assert run("tasks", "check", "plain.py") == 0
    assert "can be used" in capsys.readouterr().out
    Path("constant.py").write_text(PLAIN.replace("torch.exp(x) * 2.0", "torch.zeros_like(x)"))
    assert run("tasks", "check", "constant.py") == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == "" and "constant.py" in err
