"""`workbench tasks import` with the real sandbox and reference worker, on files of our own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.workbench.importing.trees import (
    BROKEN,
    COMMIT,
    CONSTANT,
    DEVICE,
    ENDLESS,
    LARGE,
    LICENCE,
    PACKAGE,
    RANDOM,
    SCALED,
    checkout,
)

from workbench_engine.exits import ExitCode

Run = Callable[..., int]
FILES = {
    "level1/1_Scaled.py": SCALED,
    "level1/2_Constant.py": CONSTANT,
    "level1/3_Large.py": LARGE,
    "level2/1_Random.py": RANDOM,
    "level2/2_Package.py": PACKAGE,
    "level2/3_Device.py": DEVICE,
    "level2/4_Broken.py": BROKEN,
}


def rows(text: str) -> dict[str, Any]:
    return {f"{row['level']}/{row['number']}": row for row in map(json.loads, text.splitlines())}


def test_every_file_gets_its_state_and_its_reason(home: Path, run: Run, capsys: Any) -> None:
    root = checkout(Path("kb"), FILES)
    assert run("tasks", "import", root, "--memory", 2, "-o", "rows.jsonl") == ExitCode.OK
    found = rows(Path("rows.jsonl").read_text())
    assert {key: (row["state"], row["cause"]) for key, row in found.items()} == {
        "1/1": ("clean", ""),
        "1/2": ("degenerate", "constant"),
        "1/3": ("cannot open", "too large"),
        "2/1": ("degenerate", "random"),
        "2/2": ("cannot open", "needs no_such_package_anywhere"),
        "2/3": ("cannot open", "needs CUDA"),
        "2/4": ("cannot open", "not Python"),
    }
    # 1024 * 16 rows of 65536 floats, told without making them.
    assert found["1/3"]["estimate"]["inputs"] == 1 << 32
    assert "--shrink" in found["1/3"]["reason"]
    out = capsys.readouterr().out
    assert "all    7      1      2           4" in out
    about = json.loads((home / "tasks/kernelbench/about.json").read_text())
    assert (about["commit"], about["licence"], about["source"]) == (COMMIT, "MIT", "kb")
    assert (home / "tasks/kernelbench/LICENSE").read_text() == LICENCE
    assert (home / "tasks/kernelbench/level1/1_Scaled.py").read_text() == SCALED

    # Imported tasks go by name: the whole one, its number, or alone.
    for name in ("kernelbench/1/1", "kernelbench/1/1_Scaled", "kernelbench/level1/1_Scaled", "1_Scaled"):
        assert run("tasks", "show", name, "--source") == ExitCode.OK
        assert "x * 2.0 + 1.0" in capsys.readouterr().out
    assert run("tasks", "list", "--json") == ExitCode.OK
    listed = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert listed["kernelbench/1/2"]["state"] == "degenerate"
    assert "softmax_rows" in listed
    assert run("tasks", "check", "kernelbench/1/9") == ExitCode.USAGE
    assert "it has 1/1 to 1/3, 2/1 to 2/4" in capsys.readouterr().err


def test_a_large_task_is_cut_and_says_so(home: Path, run: Run, capsys: Any) -> None:
    root = checkout(Path("kb"), {"level1/3_Large.py": LARGE})
    assert run("tasks", "import", root, "--shrink", "--memory", 2, "--json") == ExitCode.OK
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["state"] == "clean"
    assert row["original"]["inputs"] == 1 << 32
    assert row["estimate"]["inputs"] + row["estimate"]["outputs"] <= 64 << 20
    copy = (home / "tasks/kernelbench/level1/3_Large.py").read_text()
    first = copy.splitlines()[0]
    assert "3_Large" in first
    assert "cut for a CPU" in first
    for said in row["sizes"]:
        assert said in first
    assert run("tasks", "check", "kernelbench/1/3") == ExitCode.OK
    assert "cut for a CPU" in capsys.readouterr().out


def test_finished_files_are_skipped_until_they_change(home: Path, run: Run, capsys: Any) -> None:
    root = checkout(Path("kb"), {"level1/1_Scaled.py": SCALED, "level1/2_Broken.py": BROKEN})
    assert run("tasks", "import", root) == ExitCode.OK
    journal = home / "tasks/kernelbench/rows.jsonl"
    capsys.readouterr()
    assert run("tasks", "import", root) == ExitCode.OK
    assert "2 of 2 files are imported already" in capsys.readouterr().err
    assert len(journal.read_bytes().splitlines()) == 2
    # Killed while it wrote a row: what is half written is done again.
    data = journal.read_bytes()
    journal.write_bytes(data[:-20])
    (root / "KernelBench/level1/1_Scaled.py").write_text(SCALED + "# changed\n")
    assert run("tasks", "import", root, "--jobs", 2) == ExitCode.OK
    assert [json.loads(one)["state"] for one in journal.read_bytes().splitlines()][-2:] != []
    said = capsys.readouterr()
    assert "1 Scaled" in said.out or "1/1" in said.out
    assert (home / "tasks/kernelbench/level1/1_Scaled.py").read_text().endswith("# changed\n")
    assert run("tasks", "import", root, "--retry") == ExitCode.OK
    assert "1 of 2 files are imported already" in capsys.readouterr().err


def test_an_endless_file_ends_at_its_deadline(run: Run, capsys: Any) -> None:
    root = checkout(Path("kb"), {"level1/1_Endless.py": ENDLESS, "level1/2_Scaled.py": SCALED})
    assert run("tasks", "import", root, "--deadline", 8, "--json") == ExitCode.OK
    first, second = json.loads(capsys.readouterr().out)["rows"]
    assert (first["state"], first["cause"]) == ("cannot open", "too slow")
    assert 8 <= first["seconds"] < 30
    assert second["state"] == "clean"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "is no folder"),
        (("kb", "--level", 7), "--level 7"),
        (("kb", "--only", "99"), "matches no file"),
        (("kb", "-o", "rows.txt"), ".json or .jsonl"),
        (("kb", "--name", "../up"), "--name"),
        (("kb", "--jobs", 1000), "--jobs 1000"),
    ],
)
def test_wrong_requests_get_one_line(run: Run, capsys: Any, arguments: tuple[Any, ...], said: str) -> None:
    checkout(Path("kb"), {"level1/1_Scaled.py": SCALED})
    assert run("tasks", "import", *arguments) == ExitCode.USAGE
    error = capsys.readouterr().err.strip()
    assert said in error
    assert len(error.splitlines()) == 1


def test_another_checkout_does_not_overwrite_the_first(run: Run, capsys: Any) -> None:
    files = {"level1/1_Broken.py": BROKEN}
    assert run("tasks", "import", checkout(Path("kb"), files)) == ExitCode.OK
    assert run("tasks", "import", checkout(Path("other"), files)) == ExitCode.USAGE
    assert "choose another name" in capsys.readouterr().err
    assert run("tasks", "import", Path("other"), "--name", "second") == ExitCode.OK
    assert run("tasks", "show", "1_Broken") == ExitCode.USAGE
    assert "kernelbench/1/1 and second/1/1; say which" in capsys.readouterr().err
