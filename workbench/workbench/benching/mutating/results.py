"""What became of each mutant, kept in one file after each of them; and the tables that are folded from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from workbench.errors import UsageProblem
from workbench_engine.referee.claims import wilson

Fate = Literal["caught", "survived", "equivalent", "not built"]


class Tried(Struct, frozen=True):
    """One mutant. `witness` says how it was shown to differ: by the referee's own check, or by an input set of the
    battery and how many times rounding the difference is. `kernelbench`: whether a KernelBench-style check saw it."""

    key: str
    task: str
    origin: str
    kind: str
    fault: str
    note: str
    line: int
    diff: str
    fate: Fate
    where: str = ""
    detail: str = ""
    witness: str = ""
    kernelbench: bool | None = None
    seconds: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether it is a fault that was witnessed."""
        return self.fate in ("caught", "survived")


class Results(Struct, frozen=True):
    """`honest`: origins by task that passed all checks, so that mutants can be made from them again."""

    seed: int
    honest: dict[str, list[str]] = {}
    tried: list[Tried] = []


def load(path: Path | None, seed: int) -> Results:
    """What was done already; nothing when the file is absent. Raises UsageProblem for a file that does not fit."""
    if path is None:
        return Results(seed)
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Results)
    except FileNotFoundError:
        return Results(seed)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageProblem(f"{path}: no results of this bench ({error}); choose another file") from None
    if found.seed != seed:
        raise UsageProblem(f"{path}: its mutants were drawn with seed {found.seed}, not {seed}; choose another file")
    return found


def save(path: Path, results: Results) -> None:
    """Whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".new")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))
    draft.replace(path)


class Row(Struct, frozen=True):
    """Counts of one kind of fault, one task or all: faults that were witnessed, and how many of them were seen."""

    name: str
    faults: int
    caught: int
    kernelbench: int
    equivalent: int
    not_built: int

    @property
    def share(self) -> float:
        return self.caught / self.faults if self.faults else 1.0


def row(name: str, tried: Sequence[Tried]) -> Row:
    """One line of the table."""
    faults = [t for t in tried if t.counts]
    return Row(
        name=name,
        faults=len(faults),
        caught=sum(t.fate == "caught" for t in faults),
        kernelbench=sum(t.kernelbench is True for t in faults),
        equivalent=sum(t.fate == "equivalent" for t in tried),
        not_built=sum(t.fate == "not built" for t in tried),
    )


def rows(tried: Sequence[Tried], by: Literal["fault", "task", "kind"]) -> list[Row]:
    """One row a kind of fault (or task), then the sum."""
    names = sorted({str(getattr(t, by)) for t in tried})
    return [*(row(n, [t for t in tried if getattr(t, by) == n]) for n in names), row("all", tried)]


COLUMNS = ("", "faults", "referee", "", "KernelBench-style", "", "equivalent", "not built")


def cells(one: Row) -> list[str]:
    """A row as text; shares with their 95 % Wilson interval in the last line."""
    theirs = one.kernelbench / one.faults if one.faults else 1.0
    mine, other = f"{one.share:.1%}", f"{theirs:.1%}"
    if one.name == "all" and one.faults:
        low, high = wilson(one.caught, one.faults)
        mine += f" [{low:.1%} {high:.1%}]"
        low, high = wilson(one.kernelbench, one.faults)
        other += f" [{low:.1%} {high:.1%}]"
    return [
        one.name,
        str(one.faults),
        str(one.caught),
        mine,
        str(one.kernelbench),
        other,
        str(one.equivalent),
        str(one.not_built),
    ]
