"""What a collection keeps on disk: one synced line an attempt, so that it goes on where it was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Any

import msgspec

from workbench.collecting.attempts import Attempt, example, successes
from workbench.errors import EnvironmentProblem, UsageProblem

ATTEMPTS, EXAMPLES, TABLE, ABOUT = "attempts.jsonl", "sft.jsonl", "sft.parquet", "collect.json"


class Journal:
    """The folder of one collection, locked while open. Use as a context manager."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        """`about` is what must be the same when it goes on. Raises UsageProblem, EnvironmentProblem."""
        self.folder = folder
        with contextlib.ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                if not (folder / ABOUT).exists() and any(folder.iterdir()):
                    raise UsageProblem(f"{folder}: holds other files; name another folder with -o")
                lock = opened.enter_context((folder / ABOUT).open("a+b"))
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    raise UsageProblem(f"{folder}: another collection writes there; name another folder") from None
                self._agree(about)
                self.attempts = _whole_lines(folder / ATTEMPTS)
                self._file = opened.enter_context((folder / ATTEMPTS).open("ab"))
            except OSError as error:
                raise EnvironmentProblem(f"{folder}: cannot be written ({error.strerror or error})") from error
            self._opened = opened.pop_all()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *about: object) -> None:
        self._opened.close()

    def of(self, task: str, model: str) -> list[Attempt]:
        """The attempts of one task and model, in order."""
        return [one for one in self.attempts if one.task == task and one.model == model]

    def add(self, one: Attempt) -> None:
        """On disk when this returns. Raises EnvironmentProblem."""
        try:
            self._file.write(msgspec.json.encode(one) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise EnvironmentProblem(f"{self.folder}: cannot be written ({error.strerror or error})") from error
        self.attempts.append(one)

    def save(self, machine: dict[str, str]) -> tuple[int, bool]:
        """Writes the data set anew from all attempts: (examples, whether a parquet file was written too)."""
        rows = [example(one, machine) for one in successes(self.attempts)]
        _replace(self.folder / EXAMPLES, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        return len(rows), _parquet(self.folder / TABLE, rows)

    def _agree(self, about: dict[str, Any]) -> None:
        path = self.folder / ABOUT
        text = path.read_bytes()
        if not text:
            path.write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=2) + b"\n")
            return
        try:
            kept = msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageProblem(f"{path}: cannot be read ({error}); name another folder with -o") from None
        for name in sorted({*kept, *about}):
            if kept.get(name) != about.get(name):
                differs = f"{name} = {kept.get(name)!r}, now {about.get(name)!r}"
                raise UsageProblem(f"{self.folder}: holds a collection with {differs}; name another folder with -o")


def _whole_lines(path: Path) -> list[Attempt]:
    """All attempts; what a killed writer left half written is cut off."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)
    try:
        return [msgspec.json.decode(line, type=Attempt) for line in data[:whole].splitlines()]
    except msgspec.DecodeError as error:
        raise UsageProblem(f"{path}: cannot be read ({error}); name another folder with -o") from None


def _replace(path: Path, data: bytes) -> None:
    half = path.with_suffix(".half")
    with half.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    half.replace(path)


def _parquet(path: Path, rows: list[dict[str, Any]]) -> bool:
    """Only where pyarrow is installed, which nothing here depends on."""
    try:
        import importlib

        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        return False
    if not rows:
        return False
    half = path.with_suffix(".half")
    parquet.write_table(arrow.Table.from_pylist(rows), str(half))
    half.replace(path)
    return True
