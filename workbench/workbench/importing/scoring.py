"""Runs over KernelBench tasks: what is kept of each, and what it comes to in KernelBench's own figures.

Pure but for the results file, which is written whole after every run, so that a bench can be cut off and called again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from workbench.benching.claiming import Claim, claims
from workbench.benching.runs import Finished
from workbench.benching.tables import TASK_COLUMNS, task_cells
from workbench.display.words import ratio
from workbench.errors import EnvironmentProblem, UsageProblem

CORRECT = ("FASTER", "SAME", "SLOWER", "AMBIGUOUS")
COLUMNS = TASK_COLUMNS


class Entry(Struct, frozen=True):
    """One task: its run, or in `problem` why there is none (refused, too large, the run failed)."""

    key: str
    name: str
    sha256: str
    run: Finished | None = None
    problem: str = ""


class Results(Struct, frozen=True):
    """`settings` are what all runs share: level, policy, model, budget, seed."""

    settings: dict[str, str]
    entries: list[Entry] = []

    def with_entry(self, entry: Entry) -> Results:
        """The entry in place of an older one of its task."""
        return replace(self, entries=[*(e for e in self.entries if e.key != entry.key), entry])


class Score(Struct, frozen=True):
    """Over all tasks asked for; a task without a confirmed faster kernel counts as 1.0. Shares are of `tasks`.

    `low` and `high` bound the geometric mean (95 %); `missing` is how many tasks have no run at all; `fast_1` and
    `fast_1_2` are the shares of tasks with a confirmed kernel more than 1 and 1.2 times as fast.
    """

    tasks: int
    missing: int
    correct: int
    confirmed: int
    geomean: float
    low: float
    high: float
    fast_1: float
    fast_1_2: float


def load(path: Path, settings: dict[str, str]) -> Results:
    """What was done already; nothing when the file is absent. Raises UsageProblem for a file that does not fit."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Results)
    except FileNotFoundError:
        return Results(settings)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageProblem(f"{path}: no results of this bench ({error}); choose another file with -o") from None
    for name in sorted({*found.settings, *settings}):
        before, now = found.settings.get(name, "unset"), settings.get(name, "unset")
        if before != now:
            raise UsageProblem(f"{path}: its runs have {name} {before}, not {now}; choose another file with -o")
    return found


def save(path: Path, results: Results) -> None:
    """Whole or not at all. Raises EnvironmentProblem."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + ".new")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))
        draft.replace(path)
    except OSError as error:
        raise EnvironmentProblem(f"{path}: cannot be written ({error.strerror or error})") from error


def score(entries: Sequence[Entry]) -> Score:
    """Raises ValueError without entries."""
    best = [confirmed(entry) for entry in entries]
    by_task = {e.key: (e.run.claim if e.run is not None and e.run.claim else Claim()) for e in entries}
    found = claims(by_task)
    right = sum(e.run is not None and any(e.run.verdicts.get(v) for v in CORRECT) for e in entries)
    return Score(
        tasks=len(entries),
        missing=sum(entry.run is None for entry in entries),
        correct=right,
        confirmed=sum(value > 1.0 for value in best),
        geomean=found.geomean,
        low=found.low,
        high=found.high,
        fast_1=sum(value > 1.0 for value in best) / len(best),
        fast_1_2=sum(value > 1.2 for value in best) / len(best),
    )


def confirmed(entry: Entry) -> float:
    """The speedup that counts: the confirmed best, else 1.0."""
    run = entry.run
    return run.best if run is not None and run.confirmed and run.best is not None else 1.0


def cells(entry: Entry) -> list[str]:
    """One task as a row of `COLUMNS`."""
    shown = f"{entry.key} {entry.name.partition('_')[2] or entry.name}"
    if entry.run is None:
        return [shown, "0", "—", "1.00× (none)", "no", entry.problem[:80], "—"]
    return [shown, *task_cells(entry.run)[1:]]


def sentences(found: Score) -> list[str]:
    """The score in words."""
    said = [
        f"geometric mean {ratio(found.geomean)} [{ratio(found.low)} {ratio(found.high)}] over {found.tasks} tasks; "
        f"{found.tasks - found.confirmed} without a confirmed faster kernel counted as 1.0",
        f"fast_1 {found.fast_1:.0%}, fast_1.2 {found.fast_1_2:.0%}; "
        f"{found.correct} of {found.tasks} with a correct kernel",
    ]
    if found.missing:
        said.append(f"{found.missing} could not be run at all; --retry tries them again")
    return said
