"""Rows from a folder of candidates, in one of three layouts.

1. `LEVEL/ID_NAME/reference.py` with the candidates beside it (`*.py`, `*.cpp`): any folder that holds a `reference.py`
   is a task, the folder above it is its level.
2. A KernelBench run: `level_1_problem_3_sample_0_kernel.py`, references by `--reference` (`level1/3_Name.py`).
3. Any other `*.py` or `*.cpp`: its reference is the file of the same path, else of the same name, below `--reference`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from workbench.auditing.reading import LARGEST, with_samples
from workbench.auditing.rows import Row, natural
from workbench.errors import UsageProblem

RUN_FILE = re.compile(r"^level_(?P<level>\d+)_problem_(?P<task>\d+)(_sample_(?P<sample>\d+))?(_kernel)?$")
TASK_NAME = re.compile(r"^(?P<id>\d+)_(?P<name>.+)$")
LEVEL_NAME = re.compile(r"^(level)?[_-]?(?P<id>\d+)$", re.IGNORECASE)
KINDS = {".py": "module", ".cpp": "kernel", ".cc": "kernel", ".cxx": "kernel"}
SKIPPED = ("__pycache__", "__init__.py", "space.py")


class References:
    """A folder of task files, looked up by level and task or by path."""

    def __init__(self, root: Path) -> None:
        """Raises UsageProblem."""
        if not root.is_dir():
            raise UsageProblem(f"--reference {root}: is no folder; give the folder with level1/, level2/, …")
        self._by_path: dict[str, Path] = {}
        self._by_stem: dict[str, list[Path]] = {}
        self._by_id: dict[tuple[str, str], Path] = {}
        for path in _files(root, (".py",)):
            self._by_path[str(path.relative_to(root).with_suffix(""))] = path
            self._by_stem.setdefault(path.stem, []).append(path)
            level, task, _ = _place(path.relative_to(root).with_suffix(""))
            self._by_id.setdefault((level, task), path)

    def of(self, level: str, task: str) -> str | None:
        """The source for a level and a task's number or name; None when there is none. A `reading.Lookup`."""
        found = self._by_id.get((level, task))
        return None if found is None else _text(found)[0]

    def beside(self, relative: Path) -> str | None:
        """The source for a candidate's path below its own folder: same path, else the only file of that name."""
        plain = relative.with_suffix("")
        path = self._by_path.get(str(plain))
        if path is None:
            same = self._by_stem.get(plain.name, [])
            path = same[0] if len(same) == 1 else None
        return None if path is None else _text(path)[0]


def folder_rows(root: Path, references: References | None = None) -> list[Row]:
    """All candidates below `root`, by level, task and name. Raises UsageProblem when there is none."""
    with_reference = {path.parent for path in _files(root, (".py",)) if path.name == "reference.py"}
    rows = []
    for path in _files(root, tuple(KINDS)):
        if path.name == "reference.py":
            continue
        relative = path.relative_to(root)
        home = next((p for p in path.parents if p in with_reference), None)
        run = RUN_FILE.match(path.stem)
        sample = path.name if home is not None else ""
        reference: str | None
        if home is not None:
            level, task, name = _place(home.relative_to(root)) if home != root else ("-", root.name, "")
            reference, trouble = _text(home / "reference.py")
        elif run is not None:
            level, task, name, trouble = run["level"], run["task"], "", ""
            sample = run["sample"] or ""
            reference = references.of(level, task) if references else None
        else:
            level, task, name = _place(relative.with_suffix(""))
            trouble = ""
            reference = references.beside(relative) if references else None
        source, unreadable = _text(path)
        trouble = trouble or unreadable
        if reference is None and not trouble:
            trouble = "has no reference: put a reference.py beside it, or name their folder with --reference DIR"
        rows.append(
            Row(
                number=0,
                level=level,
                task=task,
                reference=reference or "",
                candidate=source,
                kind=KINDS[path.suffix],
                sample=sample,
                name=name,
                where=str(relative),
                problem=trouble,
            )
        )
    if not rows:
        raise UsageProblem(f"{root}: holds no candidates (*.py, *.cpp); give a folder of LEVEL/TASK/ folders or a file")
    return _numbered(rows)


def _numbered(rows: list[Row]) -> list[Row]:
    from msgspec.structs import replace

    # A task's only candidate needs no name of its own.
    count: dict[tuple[str, str], int] = {}
    for row in rows:
        count[row.level, row.task] = count.get((row.level, row.task), 0) + 1
    plain = [replace(row, sample="") if count[row.level, row.task] == 1 else row for row in rows]
    ordered = sorted(plain, key=lambda r: (natural(r.level), natural(r.task), natural(r.sample)))
    return with_samples(replace(row, number=i) for i, row in enumerate(ordered, 1))


def _place(relative: Path) -> tuple[str, str, str]:
    """(level, task, name) that a path says: "level1/3_Batched" → ("1", "3", "Batched")."""
    above = relative.parent.name
    level = LEVEL_NAME.match(above)
    named = TASK_NAME.match(relative.name)
    return (
        str(int(level["id"])) if level else above or "-",
        str(int(named["id"])) if named else relative.name,
        named["name"] if named else "",
    )


def _files(root: Path, suffixes: Iterable[str]) -> list[Path]:
    found = []
    for path in sorted(root.rglob("*")):
        hidden = any(part.startswith(".") or part in SKIPPED for part in path.relative_to(root).parts)
        if path.suffix in suffixes and not hidden and path.is_file():
            found.append(path)
    return found


def _text(path: Path) -> tuple[str | None, str]:
    """(text, "") or (None, why not)."""
    try:
        if path.stat().st_size > LARGEST:
            return None, f"is larger than {LARGEST} bytes"
        return path.read_text(encoding="utf-8"), ""
    except (OSError, UnicodeDecodeError) as error:
        return None, f"cannot be read ({error})"
