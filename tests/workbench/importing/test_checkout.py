"""Finding a checkout's levels and files, and where they come from, without running anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.workbench.importing.trees import COMMIT, SCALED, checkout

from workbench.errors import UsageProblem
from workbench.importing.checkout import commit_of, read_checkout

FILES = {
    "level1/10_Ten.py": SCALED,
    "level1/2_Two.py": SCALED,
    "level2/1_One.py": SCALED,
    "level1/notes.py": "",
    "level1/README.md": "",
}


@pytest.mark.parametrize("below", ["", "KernelBench", "a/b"])
def test_levels_are_found_at_the_top_or_below(tmp_path: Path, below: str) -> None:
    found = read_checkout(checkout(tmp_path, FILES, below=below))
    assert [f.key for f in found.files] == ["1/2", "1/10", "2/1"]
    assert [f.name for f in found.files] == ["2_Two", "10_Ten", "1_One"]
    assert (found.commit, found.licence) == (COMMIT, "MIT")


def test_a_level_folder_itself_will_do(tmp_path: Path) -> None:
    found = read_checkout(checkout(tmp_path, FILES) / "KernelBench/level1")
    assert [f.path for f in found.files] == ["2_Two.py", "10_Ten.py"]
    assert found.commit == COMMIT


def test_one_level_alone(tmp_path: Path) -> None:
    root = checkout(tmp_path, FILES)
    assert [f.key for f in read_checkout(root, 2).files] == ["2/1"]
    with pytest.raises(UsageProblem, match="holds level 1, 2"):
        read_checkout(root, 3)


def test_two_folders_of_one_level_need_a_choice(tmp_path: Path) -> None:
    checkout(tmp_path, FILES, below="old")
    checkout(tmp_path, FILES, below="new")
    with pytest.raises(UsageProblem, match="give the folder of one of them"):
        read_checkout(tmp_path)


def test_the_nearer_of_two_levels_wins(tmp_path: Path) -> None:
    checkout(tmp_path, {"level1/1_Near.py": SCALED}, below="now")
    checkout(tmp_path, {"level1/1_Far.py": SCALED}, below="now/archive")
    assert [f.name for f in read_checkout(tmp_path).files] == ["1_Near"]


@pytest.mark.parametrize("folder", ["absent", "empty"])
def test_what_is_no_checkout_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageProblem, match=r"checkout of KernelBench|KernelBench checkout"):
        read_checkout(tmp_path / folder)


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    root = checkout(tmp_path, FILES)
    (root / "KernelBench/level1/2_Two.py").write_bytes(b"\xff\xfe\x00")
    (first, *others) = read_checkout(root).files
    assert first.problem.startswith("cannot be read")
    assert not any(one.problem for one in others)


def test_the_commit_is_read_from_files_alone(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    git.mkdir()
    assert commit_of(tmp_path) == ""
    (git / "HEAD").write_text(COMMIT)
    assert commit_of(tmp_path) == COMMIT
    (git / "HEAD").write_text("ref: refs/heads/packed\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/packed\n")
    assert commit_of(tmp_path) == COMMIT
    (git / "HEAD").write_text("ref: ../../elsewhere\n")
    assert commit_of(tmp_path) == ""
