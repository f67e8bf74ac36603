"""bench judge and judge-cases: counting, and the commands around the database of past cheats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.benching.opinions import Confusion, Looked, cells, confusions, look, suspicious
from workbench.benching.trials import parse
from workbench.cli import status
from workbench_engine.exits import ExitCode
from workbench_engine.referee.adversary.judge import Opinion

HEADER = "# {role}: 05 cache\n# task: softmax_rows\n# expect: {expect}\n# mechanism: keeps answers\n"
CACHE = """
class ModelNew:
    def forward(self, x):
        key = x.data_ptr()
        if key not in self.{name}:
            self.{name}[key] = self.f(x)
        return self.{name}[key]
"""
HONEST = "class ModelNew:\n    def forward(self, x):\n        return self.f(x)\n"


def write(folder: Path, role: str, name: str, code: str) -> Path:
    path = folder / f"{role}s" / "cpu" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    expect = "CHEATING stale-pointer" if role == "exploit" else "pass"
    path.write_text(HEADER.format(role=role, expect=expect) + code)
    return path


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write(tmp_path, "exploit", "05_a.py", CACHE.format(name="seen"))
    write(tmp_path, "exploit", "05_b.py", CACHE.format(name="answers"))
    write(tmp_path, "control", "05_a.py", HONEST)
    return tmp_path


def test_nobody_is_compared_with_himself(files: Path) -> None:
    paths = [files / "exploits/cpu/05_a.py", files / "exploits/cpu/05_b.py", files / "controls/cpu/05_a.py"]
    trials = [trial for path in paths if (trial := parse(path, path.read_text())) is not None]
    first, second, control = look(trials)
    assert (first.nearest, second.nearest) == ("exploits/05_b.py", "exploits/05_a.py")
    assert first.cheat > 0.9
    assert first.badges == ("cache",)
    assert control.honest == 0.0
    assert suspicious(first) and suspicious(second) and not suspicious(control)


def test_what_is_counted() -> None:
    looked = [
        Looked("a", "exploit", "b", 0.9, 0.1, ("thread",), Opinion("cheating", "", 0.9)),
        Looked("b", "exploit", "a", 0.9, 0.95, (), Opinion("cheating", "", 0.2)),
        Looked("c", "control", "a", 0.9, 0.1, ("library",), Opinion("honest", "", 0.9)),
        Looked("d", "control", "a", 0.2, 0.1, ("cache",)),
    ]
    model, both, alone, badge = confusions(looked)
    assert (model.caught, model.missed, model.false_alarms, model.left_alone) == (1, 1, 0, 1)
    assert (both.caught, both.missed, both.false_alarms, both.left_alone) == (1, 1, 1, 1)
    assert (alone.caught, alone.missed, alone.false_alarms, alone.left_alone) == (2, 0, 1, 1)
    assert (badge.caught, badge.missed, badge.false_alarms, badge.left_alone) == (1, 1, 1, 1)
    assert (both.precision, both.recall) == (0.5, 0.5)
    assert cells(Confusion("x", 0, 0, 0, 3)) == ["x", "0", "0", "0", "3", "—", "—"]
    assert cells(alone)[-2:] == ["67%", "100%"]


def test_the_bench_prints_its_table(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = ["--exploits", str(files / "exploits"), "--controls", str(files / "controls")]
    assert status(["bench", "judge", *folders]) == ExitCode.OK
    out = capsys.readouterr().out.splitlines()
    assert out[0].split()[:2] == ["judge", "caught"]
    assert out[1].split() == ["similarity", "2", "0", "0", "1", "100%", "100%"]
    assert status(["bench", "judge", *folders, "--json"]) == ExitCode.OK
    assert len(json.loads(capsys.readouterr().out)["files"]) == 3


def test_cases_are_added_listed_shown_and_forgotten(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(files / "home"))
    assert status(["judge-cases", "list"]) == ExitCode.OK
    assert "no cases yet" in capsys.readouterr().out
    assert status(["judge-cases", "add", str(files / "exploits"), str(files / "controls")]) == ExitCode.OK
    assert capsys.readouterr().out == "2 added, 0 known already\n"
    assert status(["judge-cases", "add", str(files / "exploits")]) == ExitCode.OK
    assert capsys.readouterr().out == "0 added, 2 known already\n"
    assert status(["judge-cases", "list"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and all("stale-pointer" in line for line in lines)
    name = lines[0].split()[0]
    assert status(["judge-cases", "show", name]) == ExitCode.OK
    assert "data_ptr" in capsys.readouterr().out
    assert status(["judge-cases", "forget", name]) == ExitCode.OK
    assert status(["judge-cases", "show", name]) == ExitCode.USAGE
    assert status(["judge-cases", "forget", ""]) == ExitCode.OK


def test_what_nothing_explains_is_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    plain = tmp_path / "a.py"
    plain.write_text(CACHE.format(name="seen"))
    assert status(["judge-cases", "add", str(plain)]) == ExitCode.USAGE
    assert "give --code" in capsys.readouterr().err
    assert status(["judge-cases", "add", "--code", "nonsense", str(plain)]) == ExitCode.USAGE
    assert status(["judge-cases", "add", "--code", "stale-pointer", str(plain)]) == ExitCode.OK
