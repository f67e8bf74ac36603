"""What a collection keeps on disk: one synced line an attempt, so that it goes on where it was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from workbench.collecting.attempts import Attempt, data_set, example
from workbench.collecting.table import write_table
from workbench.errors import EnvironmentProblem, UsageProblem

ATTEMPTS, EXAMPLES, TABLE, ABOUT, LOCK = "attempts.jsonl", "sft.jsonl", "sft.parquet", "collect.json", "collect.lock"


class Journal:
    """The folder of one collection, locked while open. Use as a context manager."""

    def __init__(self, folder: Path, about: dict[str, Any], models: Mapping[str, dict[str, Any]]) -> None:
        """`about` must be the same when the collection goes on, and so must `models` by name; models may be added.

        Raises UsageProblem, EnvironmentProblem.
        """
        self.folder = folder
        with contextlib.ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                if not (folder / ABOUT).exists() and any(one.name != LOCK for one in folder.iterdir()):
                    raise UsageProblem(f"{folder}: holds other files; name another folder with -o")
                lock = opened.enter_context((folder / LOCK).open("ab"))
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    raise UsageProblem(f"{folder}: another collection writes there; name another folder") from None
                self._agree(about, models)
                self.attempts = whole_lines(folder / ATTEMPTS)
                self._file = opened.enter_context((folder / ATTEMPTS).open("ab"))
            except OSError as error:
                raise _unwritable(folder, error) from error
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
            raise _unwritable(self.folder, error) from error
        self.attempts.append(one)

    def agree_on(self, task: str, reference: str, prompt_sha256: str = "") -> None:
        """Raises UsageProblem when attempts at `task` were made with another reference or another prompt."""
        for one in self.attempts:
            if one.task != task:
                continue
            if one.reference != reference:
                raise UsageProblem(
                    f"{self.folder}: holds attempts at another task of the name {task}; name another folder with -o"
                )
            if prompt_sha256 and one.prompt_sha256 != prompt_sha256:
                raise UsageProblem(
                    f"{self.folder}: asked for {task} with another prompt (templates, machine or version changed); "
                    "name another folder with -o"
                )

    def save(self) -> tuple[int, bool]:
        """Writes the data set anew from all attempts: (examples, whether a parquet file was written too).

        Raises EnvironmentProblem.
        """
        rows = [example(one) for one in data_set(self.attempts)]
        try:
            replace_file(self.folder / EXAMPLES, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
            return len(rows), write_table(self.folder / TABLE, rows)
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def _agree(self, about: dict[str, Any], models: Mapping[str, dict[str, Any]]) -> None:
        path = self.folder / ABOUT
        kept = read_about(self.folder) if path.exists() else {**about, "models": {}}
        known: dict[str, Any] = kept.pop("models", {})
        differing = _differing(kept, about)
        for name in sorted({*known} & {*models}):
            differing += [f"{name}: {said}" for said in _differing(known[name], models[name])]
        if differing:
            raise UsageProblem(f"{self.folder}: holds a collection with {differing[0]}; name another folder with -o")
        merged = {**about, "models": {**known, **models}}
        if not path.exists() or merged["models"] != known:
            replace_file(path, msgspec.json.format(msgspec.json.encode(merged), indent=2) + b"\n")


def read_about(folder: Path) -> dict[str, Any]:
    """What a folder's collection was asked to do: its settings, and its models by name. Raises UsageProblem."""
    path = folder / ABOUT
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        msgspec.convert(kept.get("models", {}), dict[str, dict[str, Any]])
    except FileNotFoundError:
        raise UsageProblem(f"{folder}: holds no collection (no {ABOUT})") from None
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UsageProblem(f"{path}: cannot be read ({error}); name another folder with -o") from None
    return kept


def _differing(kept: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} = {kept.get(name)!r}, now {now.get(name)!r}"
        for name in sorted({*kept, *now})
        if kept.get(name) != now.get(name)
    ]


def whole_lines(path: Path) -> list[Attempt]:
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


def replace_file(path: Path, data: bytes) -> None:
    """All of it or nothing. Raises OSError."""
    half = path.with_name(path.name + ".half")
    with half.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    half.replace(path)


def _unwritable(folder: Path, error: OSError) -> EnvironmentProblem:
    return EnvironmentProblem(f"{folder}: cannot be written ({error.strerror or error})")
