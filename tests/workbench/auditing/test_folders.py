from __future__ import annotations

from pathlib import Path

import pytest

from workbench.auditing.folders import References, folder_rows
from workbench.errors import UsageProblem


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_py", ".py").replace("_cpp", ".cpp")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_task_folder_with_its_candidates(tmp_path: Path) -> None:
    write(tmp_path, level1__10_Soft__reference_py="ref", level1__10_Soft__a_py="a", level1__10_Soft__b_cpp="b")
    write(tmp_path, level1__2_Gelu__reference_py="ref2", level1__2_Gelu__candidate_py="c")
    rows = folder_rows(tmp_path)
    assert [r.key for r in rows] == ["1/2", "1/10#a.py", "1/10#b.cpp"]
    assert [(r.name, r.kind, r.candidate, r.reference) for r in rows] == [
        ("Gelu", "module", "c", "ref2"),
        ("Soft", "module", "a", "ref"),
        ("Soft", "kernel", "b", "ref"),
    ]


def test_a_kernelbench_run_with_references_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "kb", level1__3_Batched_py="three", level2__3_Conv_py="other")
    run = tmp_path / "run"
    run.mkdir()
    (run / "level_1_problem_3_sample_0_kernel.py").write_text("k0")
    (run / "level_1_problem_3_sample_1_kernel.py").write_text("k1")
    (run / "level_1_problem_4_sample_0_kernel.py").write_text("k2")
    rows = folder_rows(run, References(tmp_path / "kb"))
    assert [(r.key, r.reference) for r in rows[:2]] == [("1/3#0", "three"), ("1/3#1", "three")]
    assert "no reference" in rows[2].problem


def test_any_other_file_belongs_to_the_reference_of_its_path_or_name(tmp_path: Path) -> None:
    write(tmp_path / "refs", level2__7_A_py="seven", deep__9_B_py="nine")
    write(tmp_path / "mine", level2__7_A_py="a", new__9_B_py="b")
    rows = folder_rows(tmp_path / "mine", References(tmp_path / "refs"))
    assert [(r.key, r.reference) for r in rows] == [("2/7", "seven"), ("new/9", "nine")]


def test_unreadable_and_lonely_files_are_rows_with_a_problem(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / ".hidden.py").write_text("no")
    (row,) = folder_rows(tmp_path)
    assert "cannot be read" in row.problem


def test_an_empty_folder_and_a_missing_reference_folder_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="no candidates"):
        folder_rows(tmp_path)
    with pytest.raises(UsageProblem, match="--reference"):
        References(tmp_path / "absent")
