"""What an audit keeps on disk while it runs: one line a judged row, so that a killed audit goes on where it stopped.

`audit.json` says what is audited, how and on which machine; `results.jsonl` holds the outcomes, each written and synced
before the next row begins; `attempts.jsonl` the rows that were begun, so that one that kills the audit itself is left
out the third time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import Counter
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct

from workbench.auditing.rows import Outcome
from workbench.errors import EnvironmentProblem, UsageProblem

ABOUT, RESULTS, ATTEMPTS = "audit.json", "results.jsonl", "attempts.jsonl"
REPORTS = ("table.md", "report.html", "summary.json")


class About(Struct, frozen=True):
    """What decides the outcomes: two audits with the same `About` may share results. `settings` are the options."""

    input: str
    input_sha256: str
    settings: dict[str, str]
    cpu: str
    torch: str
    version: str


class Journal:
    """The folder of one audit, locked while open. Use as a context manager."""

    def __init__(self, folder: Path, about: About, fresh: bool = False) -> None:
        """Raises UsageProblem when the folder belongs to something else, EnvironmentProblem when it cannot be used."""
        self.folder = folder
        self._about = about
        with contextlib.ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                if not (folder / ABOUT).exists() and any(folder.iterdir()):
                    raise UsageProblem(f"{folder}: holds other files; name another folder with -o")
                self._take(opened.enter_context((folder / ABOUT).open("a+b")))
                if fresh:
                    for name in (RESULTS, ATTEMPTS, *REPORTS):
                        (folder / name).unlink(missing_ok=True)
                    self._write_about()
                else:
                    self._same_audit()
                kept: list[Outcome] = self._load(RESULTS, Outcome)
                self._by_key = {outcome.key: outcome for outcome in kept}
                self._attempts = Counter(self._load(ATTEMPTS, str))
                self._attempts.subtract(outcome.key for outcome in kept)
                self._results = opened.enter_context((folder / RESULTS).open("ab"))
                self._begun = opened.enter_context((folder / ATTEMPTS).open("ab"))
            except OSError as error:
                raise EnvironmentProblem(f"{folder}: cannot be written ({error.strerror or error})") from error
            self._opened = opened.pop_all()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *about: object) -> None:
        self._opened.close()

    @property
    def outcomes(self) -> list[Outcome]:
        """The latest outcome of every row that has one."""
        return list(self._by_key.values())

    def done(self, retry: bool = False) -> set[str]:
        """Keys of the rows that have an outcome; with `retry` only of those that this machine could judge."""
        return {key for key, outcome in self._by_key.items() if not (retry and outcome.state == "NOT REFEREED")}

    def attempts(self, key: str) -> int:
        """How often the row was begun without coming to an outcome."""
        return self._attempts[key]

    def begin(self, key: str) -> None:
        """Remember, before anything of the row runs, that it is tried."""
        _append(self._begun, key)

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome; it is on disk when this returns. Raises EnvironmentProblem."""
        try:
            _append(self._results, outcome)
        except OSError as error:
            raise EnvironmentProblem(f"{self.folder}: cannot be written ({error.strerror or error})") from error
        self._by_key[outcome.key] = outcome

    def _take(self, file: IO[bytes]) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageProblem(f"{self.folder}: another audit writes there; wait for it or name another -o") from None

    def _same_audit(self) -> None:
        text = (self.folder / ABOUT).read_bytes()
        if not text:
            return self._write_about()
        try:
            kept = msgspec.json.decode(text, type=About)
        except msgspec.DecodeError as error:
            raise UsageProblem(f"{self.folder / ABOUT}: cannot be read ({error}); --fresh starts anew") from None
        if kept != self._about:
            raise UsageProblem(
                f"{self.folder}: holds an audit with {_difference(kept, self._about)}; "
                "--fresh throws it away, -o names another folder"
            )

    def _write_about(self) -> None:
        (self.folder / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(self._about), indent=2) + b"\n")

    def _load(self, name: str, kind: Any) -> list[Any]:
        """All whole lines; what a killed writer left half written is cut off."""
        path = self.folder / name
        if not path.exists():
            return []
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)
        try:
            return [msgspec.json.decode(line, type=kind) for line in data[:whole].splitlines()]
        except msgspec.DecodeError as error:
            raise UsageProblem(f"{path}: cannot be read ({error}); --fresh starts anew") from None


def _append(file: IO[bytes], value: Any) -> None:
    file.write(msgspec.json.encode(value) + b"\n")
    file.flush()
    os.fsync(file.fileno())


def _difference(kept: About, now: About) -> str:
    for name in ("input_sha256", "cpu", "torch", "version"):
        before, after = getattr(kept, name), getattr(now, name)
        if before != after:
            words = {"input_sha256": "another input", "cpu": f"another processor ({before})"}
            return words.get(name, f"another {name} ({before}, now {after})")
    for name in sorted({*kept.settings, *now.settings}):
        before, after = kept.settings.get(name, "unset"), now.settings.get(name, "unset")
        if before != after:
            return f"another --{name} ({before}, now {after})"
    return "other settings"
