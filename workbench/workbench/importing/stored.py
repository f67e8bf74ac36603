"""Imported tasks in the user's data folder: a copy of each file, where it comes from, and how it is called.

`tasks/NAME/about.json` is the provenance, `rows.jsonl` one line a file, `levelN/` the copies, `LICENSE` the licence
that came with them. A task is named `NAME/LEVEL/NUMBER`, also with its whole name, or by that name alone where no other
collection has it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from workbench.errors import EnvironmentProblem, UsageProblem
from workbench.importing.rows import Row
from workbench_engine.tasks.catalogue import resolve

ABOUT, ROWS, LICENCE = "about.json", "rows.jsonl", "LICENSE"
NAME = re.compile(r"^[A-Za-z][\w-]{0,40}$")


class About(Struct, frozen=True):
    """Where a collection comes from. `source` is the folder's own name: its place on a machine is nobody's business."""

    source: str
    commit: str
    licence: str
    imported: str
    version: str


class Collection:
    """One folder of imported tasks. Reading what is not there gives nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        return self.folder.name

    def about(self) -> About | None:
        """Raises UsageProblem when the file is there and cannot be read."""
        try:
            return msgspec.json.decode((self.folder / ABOUT).read_bytes(), type=About)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise UsageProblem(f"{self.folder / ABOUT}: cannot be read ({error}); remove the folder") from None

    def rows(self) -> list[Row]:
        """The latest row of each file, by level and number. Raises UsageProblem."""
        path = self.folder / ROWS
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageProblem(f"{path}: cannot be read ({error.strerror or error})") from None
        # A line that a killed import left half written is no line.
        lines = data[: data.rfind(b"\n") + 1].splitlines()
        try:
            found = [msgspec.json.decode(line, type=Row) for line in lines]
        except msgspec.DecodeError as error:
            raise UsageProblem(f"{path}: cannot be read ({error}); remove the folder") from None
        latest = {(row.level, row.number, row.name): row for row in found}
        return [latest[key] for key in sorted(latest)]

    def path_of(self, row: Row) -> Path:
        """Where the copy of a file lies."""
        return self.folder / f"level{row.level}" / f"{row.name}.py"

    def begin(self, about: About, licence_text: str) -> None:
        """Creates the folder or takes up what it holds. Raises EnvironmentProblem."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=2) + b"\n")
            if licence_text:
                (self.folder / LICENCE).write_text(licence_text, encoding="utf-8")
            path = self.folder / ROWS
            if path.exists():
                data = path.read_bytes()
                os.truncate(path, data.rfind(b"\n") + 1)
        except OSError as error:
            raise EnvironmentProblem(f"{self.folder}: cannot be written ({error.strerror or error})") from None

    def add(self, row: Row, source: str) -> None:
        """Keeps a file's copy and its row; both are on disk when this returns. Raises EnvironmentProblem."""
        try:
            if source:
                path = self.path_of(row)
                path.parent.mkdir(parents=True, exist_ok=True)
                draft = path.with_suffix(".new")
                draft.write_text(source, encoding="utf-8")
                draft.replace(path)
            with (self.folder / ROWS).open("ab") as file:
                file.write(msgspec.json.encode(row) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise EnvironmentProblem(f"{self.folder}: cannot be written ({error.strerror or error})") from None


def collections(folder: Path) -> list[Collection]:
    """All collections in the user's folder of tasks, by name."""
    if not folder.is_dir():
        return []
    return [Collection(inner) for inner in sorted(folder.iterdir()) if (inner / ABOUT).is_file()]


def collection(folder: Path, name: str) -> Collection:
    """The collection to import into. Raises UsageProblem for what cannot be its name."""
    if not NAME.match(name):
        raise UsageProblem(f"--name {name!r}: use letters, digits, dash and underscore, a letter first")
    return Collection(folder / name)


def find(folder: Path, task: str) -> Path | None:
    """The copy that `task` names, None where no imported task is meant. Raises UsageProblem for a name that several
    have, or that begins with a collection and names none of its tasks."""
    if task.endswith(".py") or Path(task).exists():
        return None
    known = collections(folder)
    first, _, rest = task.partition("/")
    for one in known:
        if first == one.name and rest:
            rows = one.rows()
            chosen = [row for row in rows if rest in _names(row)]
            if len(chosen) == 1:
                return one.path_of(chosen[0])
            raise UsageProblem(f"{task}: {_none_or_several(one, rows, chosen)}")
    if "/" in task:
        return None
    matches = [(one, row) for one in known for row in one.rows() if task == row.name]
    if len(matches) > 1:
        raise UsageProblem(f"{task}: is {' and '.join(f'{one.name}/{row.key}' for one, row in matches)}; say which")
    return matches[0][0].path_of(matches[0][1]) if matches else None


def task_file(folder: Path, task: str) -> Path:
    """The file of an imported or a bundled task, or of a path. Raises TaskRejected when it is none, UsageProblem."""
    return find(folder, task) or resolve(task)


def _names(row: Row) -> tuple[str, ...]:
    """What may stand behind the collection's name."""
    return (row.key, f"{row.level}/{row.name}", f"level{row.level}/{row.name}", f"level{row.level}/{row.number}")


def _none_or_several(one: Collection, rows: Sequence[Row], chosen: Sequence[Row]) -> str:
    if chosen:
        return f"is {' and '.join(f'{one.name}/{row.level}/{row.name}' for row in chosen)}; say which"
    spans = []
    for level in sorted({row.level for row in rows}):
        numbers = [row.number for row in rows if row.level == level]
        spans.append(f"{level}/{min(numbers)} to {level}/{max(numbers)}")
    return f"no such task in {one.name}; it has {', '.join(spans) or 'none'} (`workbench tasks list`)"
