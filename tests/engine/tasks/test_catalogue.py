"""Finding tasks by name and by path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workbench_engine.tasks.catalogue import bundled_names, bundled_path, bundled_space, resolve, space_for
from workbench_engine.tasks.contract import TaskRejected


def test_bundled_tasks_are_found() -> None:
    assert {"softmax_rows", "layernorm", "rmsnorm", "bias_gelu_scale", "cross_entropy", "attention_short"} <= set(
        bundled_names()
    )
    assert resolve("softmax_rows") == bundled_path("softmax_rows")
    assert space_for(resolve("softmax_rows")) is bundled_space("softmax_rows")


def test_files_are_found_and_have_no_space(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("")
    assert resolve(str(file)) == file
    assert space_for(file) is None


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ("softmax_row", "did you mean 'softmax_rows'?"),
        ("zzzz", "known: "),
        ("no/such/file.py", "no such file"),
    ],
)
def test_unknown_task_is_one_line_with_a_hint(task: str, reason: str) -> None:
    with pytest.raises(TaskRejected) as caught:
        resolve(task)
    assert str(caught.value).startswith(f"{task}: ")
    assert reason in str(caught.value)


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskRejected, match="is a folder"):
        resolve(str(tmp_path))


def test_catalogue_and_spaces_do_not_import_torch() -> None:
    code = (
        "import sys; from workbench_engine.tasks.catalogue import *; "
        "[bundled_space(n) for n in bundled_names()]; assert 'torch' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
