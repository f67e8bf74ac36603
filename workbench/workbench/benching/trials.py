"""Exploits and controls as files: what each claims to be, read from the comment lines at its head; pure.

    # exploit: 05 cache by pointer              (or `control: of 05`)
    # task: softmax_rows                        (bundled, or a file of the folder `tasks` beside the exploits)
    # expect: CHEATING|WRONG stale-pointer      (verdicts that will do, then finding codes of which one must be raised)
    # mechanism: one line
    # naive: sees                               (a naive check is not fooled; without this line it is)

In C++ the same after `//`, also below a first line `// flags:`. `pass` stands for the four verdicts of a right answer;
REFUSED means that the task itself is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from msgspec import Struct

from workbench.errors import UsageProblem, nearest
from workbench_engine.referee.findings import BY_CODE

PASS = ("FASTER", "SAME", "SLOWER", "AMBIGUOUS")
CLAIMS = ("FASTER", "SAME", "AMBIGUOUS")
NAMELESS = ("FAILED", "REFUSED", "SLOWER")
VERDICTS = (*PASS, "WRONG", "FAILED", "CHEATING", "REFUSED")
KEYS = ("exploit", "control", "task", "expect", "mechanism", "backend", "naive")
_LINE = re.compile(r"^(?:#|//)\s*(\w+):\s*(.*?)\s*$")
_ROW = re.compile(r"^(?:of\s+)?(\d+|-)\s*(.*)$")


class Trial(Struct, frozen=True):
    """One file and what must come of it. `row`: its row of the exploit catalogue, None for what has none."""

    name: str
    path: Path
    text: str
    role: Literal["exploit", "control"]
    row: int | None
    title: str
    task: str
    verdicts: tuple[str, ...]
    findings: tuple[str, ...]
    mechanism: str
    backend: str = "cpu"
    naive: Literal["fooled", "sees"] = "fooled"

    @property
    def kind(self) -> str:
        return "kernel" if self.path.suffix == ".cpp" else "module"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def caught(self, verdict: str, findings: list[str]) -> bool:
        """Whether the verdict is one that will do. Where that makes a claim, a finding has to say what it is."""
        return verdict in self.verdicts and (verdict not in CLAIMS or self.names(verdict, findings))

    def names(self, verdict: str, findings: list[str]) -> bool:
        """Whether the mechanism is named: by one of the expected codes, if any is expected. What ended by itself, was
        refused or gained nothing needs no name."""
        return verdict in NAMELESS or not self.findings or any(code in self.findings for code in findings)


def header(text: str) -> dict[str, str]:
    """`key: value` of the comment lines at the head of a file, up to the first line of code."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith(("#", "//")):
            break
        match = _LINE.match(line)
        if match and match[1] in KEYS:
            found.setdefault(match[1], match[2])
    return found


def read_trial(path: Path) -> Trial | None:
    """The trial in a file; None when it has no such header. Raises UsageProblem with file and line's key."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path}: cannot be read ({error})") from None
    return parse(path, text)


def parse(path: Path, text: str) -> Trial | None:
    """As `read_trial`, of a text already read."""
    said = header(text)
    role: Literal["exploit", "control"] | None = (
        "exploit" if "exploit" in said else "control" if "control" in said else None
    )
    if role is None:
        return None
    missing = [key for key in ("task", "expect") if not said.get(key)]
    if missing:
        raise UsageProblem(f"{path}: its header lacks `{missing[0]}:`; see docs/referee.md")
    numbered = _ROW.match(said[role])
    if numbered is None:
        raise UsageProblem(f"{path}: `{role}: {said[role]}` names no row; write a number of the catalogue, or -")
    verdicts, findings = _expected(path, said["expect"])
    naive = said.get("naive", "fooled").split()[0]
    if naive not in ("fooled", "sees"):
        raise UsageProblem(f"{path}: `naive: {naive}` is unknown; it may be fooled or sees")
    return Trial(
        name=path.name,
        path=path,
        text=text,
        role=role,
        row=None if numbered[1] == "-" else int(numbered[1]),
        title=numbered[2],
        task=said["task"],
        verdicts=verdicts,
        findings=findings,
        mechanism=said.get("mechanism", ""),
        backend=said.get("backend", "cpu"),
        naive="sees" if naive == "sees" else "fooled",
    )


def _expected(path: Path, value: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    first, _, second = value.partition(" ")
    verdicts: list[str] = []
    for word in first.split("|"):
        if word == "pass":
            verdicts += PASS
        elif word in VERDICTS:
            verdicts.append(word)
        else:
            raise UsageProblem(f"{path}: `expect:` knows no verdict {word!r}; {nearest(word, (*VERDICTS, 'pass'))}")
    findings = tuple(code.strip() for code in second.split("|") if code.strip())
    for code in findings:
        if code not in BY_CODE:
            raise UsageProblem(f"{path}: `expect:` knows no finding {code!r}; {nearest(code, BY_CODE)}")
    return tuple(verdicts), findings


def find_trials(folders: list[Path], backend: str, only: str) -> list[Trial]:
    """All trials of a backend under `FOLDER/BACKEND`, by name; `only`: comma separated patterns (* and ?) or parts of
    names. Raises UsageProblem."""
    found: list[Trial] = []
    for folder in folders:
        inside = folder / backend
        if not inside.is_dir():
            raise UsageProblem(
                f"{inside}: no such folder; run this in the repository, or say --exploits and --controls"
            )
        paths = sorted(p for p in inside.iterdir() if p.suffix in (".py", ".cpp"))
        found += [trial for trial in map(read_trial, paths) if trial is not None]
    patterns = [one.strip() for one in only.split(",") if one.strip()]
    if patterns:
        found = [t for t in found if any(_chosen(t, pattern) for pattern in patterns)]
    if not found:
        raise UsageProblem(f"--only {only!r} matches no file" if only else f"{folders[0]}: no exploits there")
    return found


def _chosen(trial: Trial, pattern: str) -> bool:
    address = f"{trial.role}s/{trial.name}"
    return fnmatch(trial.name, pattern) or fnmatch(address, pattern) or pattern in address


def by_task(trials: list[Trial]) -> Iterator[tuple[str, list[Trial]]]:
    """Trials of one task together, so that each task is opened once."""
    names = dict.fromkeys(t.task for t in trials)
    for name in names:
        yield name, [t for t in trials if t.task == name]


def task_file(name: str, folders: list[Path]) -> str:
    """Path of a task that comes with the exploits, else the name itself (a bundled task)."""
    for folder in folders:
        path = folder / "tasks" / f"{name}.py"
        if path.is_file():
            return str(path)
    return name
