from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.workbench.auditing.conftest import REFERENCE, candidate

from workbench_engine.exits import ExitCode

Run = Callable[..., int]
Entry = Callable[..., dict[str, Any]]


def write(path: Path, *entries: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in entries))
    return path


def test_rows_are_judged_reported_and_kept(home: Path, run: Run, entry: Entry, capsys: Any, tmp_path: Path) -> None:
    slow = REFERENCE.replace("torch.softmax(x, dim=1)", "torch.stack([torch.softmax(row, dim=0) for row in x])")
    file = write(
        tmp_path / "Made up.json",
        entry(1, candidate("return torch.softmax(x, dim=1)"), score=3.0) | {"ref_code": slow},
        entry(2, candidate("return torch.softmax(x, dim=0)"), score=449.0) | {"ref_code": slow},
        entry(3, candidate("return x[:, :1] * 0"), score=120.0)
        | {"ref_code": REFERENCE.replace("torch.softmax(x, dim=1)", "x[:, :1] * 0")},
        entry(4, None, score=2.0),
    )
    arguments = ("audit", file, "--profile", "search", "--set", "batch_size=32", "--expect", "1=6")
    assert run(*arguments, "--json", "--limit", 4) == ExitCode.OK
    printed = json.loads(capsys.readouterr().out)
    whole = printed["groups"][-1]
    assert (whole["rows"], whole["absent"], whole["no_code"], whole["not_judged"]) == (6, 2, 1, 1)
    assert whole["verdicts"]["WRONG"] == 1
    assert whole["claimed"]["max"] == 449.0 and whole["refereed"]["max"] < 100
    assert printed["notes"]

    folder = Path("out") / "audit-Made-up"
    kept = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    by_task = {row["task"]: row for row in kept}
    assert by_task["1"]["state"] in ("FASTER", "AMBIGUOUS", "SAME", "SLOWER") and by_task["1"]["d"]
    assert by_task["1"]["changed"] == ["batch_size 16 → 32"]
    assert by_task["3"]["state"] == "TASK REFUSED" and by_task["3"]["reason"]
    assert "| 1/2 | 449× | WRONG |" in (folder / "table.md").read_text()
    assert "<svg" in (folder / "report.html").read_text()
    assert json.loads((folder / "summary.json").read_text()) == printed

    # Again: nothing is judged twice, and the reports are the same.
    assert run(*arguments, "--claim", "score_cuda_graph") == ExitCode.OK
    assert len((folder / "results.jsonl").read_text().splitlines()) == 4
    assert json.loads((folder / "summary.json").read_text())["claim"] == "score_cuda_graph"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("absent.json",), "absent.json: cannot be read"),
        (("rows.json", "--set", "batch_size=big"), "--set"),
        (("rows.json", "--claim", "score_defualt"), "did you mean 'score_default'"),
        (("rows.json", "--profile", "quick"), "--profile"),
        (("rows.json", "--only", "9/9"), "--only 9/9"),
        (("rows.json", "--expect", "100"), "--expect"),
        (("rows.json", "--jobs", "500"), "--jobs 500"),
        (("rows.json", "--reference", "absent"), "--reference"),
        (("folder", "--code", "x"), "--code"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    home: Path, run: Run, entry: Entry, capsys: Any, arguments: tuple[str, ...], said: str
) -> None:
    write(Path("rows.json"), entry(1, None))
    Path("folder").mkdir()
    assert run("audit", *arguments) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not Path("out").exists()


def test_rows_without_code_need_no_sandbox_and_stdin_will_do(
    home: Path, run: Run, entry: Entry, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io
    import sys

    text = json.dumps(entry(1, None)) + "\n" + json.dumps(entry(2, "None", level=2))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    monkeypatch.setenv("PATH", "")
    assert run("audit", "-", "-o", "here") == ExitCode.OK
    assert "2/2  1.50×    NO CODE" in capsys.readouterr().out
    assert (Path("here") / "report.html").exists()
