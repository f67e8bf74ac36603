"""A KernelBench checkout as found on disk: its levels, its task files, where it comes from. Reads, never runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from workbench.errors import UsageProblem

LEVEL = re.compile(r"^level[_-]?(\d+)$", re.IGNORECASE)
TASK = re.compile(r"^(\d+)_(.+)\.py$")
LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE")
LARGEST = 1 << 20
"""Bytes: no task file is so large."""
DEEPEST = 3
"""Folders below the given one in which levels are looked for."""


class Found(Struct, frozen=True):
    """One task file. `path` is relative to the checkout; `problem` says why `source` is empty."""

    level: int
    number: int
    name: str
    path: str
    source: str
    problem: str = ""

    @property
    def key(self) -> str:
        """ "1/23", as KernelBench counts."""
        return f"{self.level}/{self.number}"


class Checkout(Struct, frozen=True):
    """The files by level and number, and their origin. `commit` and `licence` are empty where none can be read."""

    root: Path
    commit: str
    licence: str
    licence_text: str
    files: tuple[Found, ...]


def read_checkout(root: Path, level: int = 0) -> Checkout:
    """All task files of a level (0: of all). Raises UsageProblem when there are none.

    The levels may lie in the folder, below it (KernelBench/level1), or the folder may itself be one.
    """
    if not root.is_dir():
        raise UsageProblem(f"{root}: is no folder; give a checkout of KernelBench")
    folders = _levels(root)
    if not folders:
        raise UsageProblem(
            f"{root}: holds no level1/, level2/, … with files like 1_Name.py; give a KernelBench checkout"
        )
    if level and level not in folders:
        raise UsageProblem(f"--level {level}: {root} holds level {', '.join(map(str, sorted(folders)))}")
    files = [
        _read(root, number, path)
        for number, folder in sorted(folders.items())
        if level in (0, number)
        for path in _tasks(folder)
    ]
    home = next((p for p in (root.resolve(), *root.resolve().parents[:2]) if (p / ".git").exists()), root)
    licence, text = _licence([root, home])
    return Checkout(root, commit_of(home), licence, text, tuple(sorted(files, key=lambda f: (f.level, f.number))))


def commit_of(folder: Path) -> str:
    """The commit that `.git` says is checked out, read from its files: no program runs in somebody's repository."""
    git = folder / ".git"
    head = _line(git / "HEAD")
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    if ".." in name:
        return ""
    if loose := _line(git / name):
        return loose
    try:
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _levels(root: Path) -> dict[int, Path]:
    """Folders of levels, the ones nearest to the root. Raises UsageProblem when two are equally near."""
    found: dict[int, tuple[int, Path]] = {}
    for depth, folder in sorted(_folders(root, 0)):
        named = LEVEL.match(folder.resolve().name)
        if named is None or not _tasks(folder):
            continue
        number = int(named[1])
        before = found.get(number)
        if before is None:
            found[number] = (depth, folder)
        elif before[0] == depth:
            raise UsageProblem(
                f"{root}: level {number} is both {before[1]} and {folder}; give the folder of one of them"
            )
    return {number: folder for number, (_, folder) in found.items()}


def _folders(folder: Path, depth: int) -> Iterator[tuple[int, Path]]:
    yield depth, folder
    if depth < DEEPEST:
        for inner in folder.iterdir():
            if inner.is_dir() and not inner.is_symlink() and not inner.name.startswith("."):
                yield from _folders(inner, depth + 1)


def _tasks(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if TASK.match(path.name) and path.is_file()]


def _read(root: Path, level: int, path: Path) -> Found:
    named = TASK.match(path.name)
    assert named is not None
    source, problem = "", ""
    try:
        if path.stat().st_size > LARGEST:
            problem = f"is larger than {LARGEST} bytes"
        else:
            source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read ({error})"
    return Found(level, int(named[1]), path.stem, path.relative_to(root).as_posix(), source, problem)


def _licence(folders: list[Path]) -> tuple[str, str]:
    for path in (folder / name for folder in folders for name in LICENCES):
        if path.is_file() and path.stat().st_size < LARGEST:
            text = path.read_text(encoding="utf-8", errors="replace")
            first = next((line.strip() for line in text.splitlines() if line.strip()), "")
            return ("MIT" if first.startswith("MIT License") else first[:60]), text
    return "", ""
