"""Raw results of a long bench in one JSON file, written after each run, so that it can be cut off and resumed."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from workbench.benching.runs import Finished
from workbench.errors import UsageProblem


class Results(Struct, frozen=True):
    """`evaluations` is the budget that all runs share."""

    evaluations: int
    runs: list[Finished] = []


def load(path: Path, evaluations: int) -> Results:
    """What was done already; nothing when the file is absent. Raises UsageProblem for a file that does not fit."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Results)
    except FileNotFoundError:
        return Results(evaluations)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageProblem(f"{path}: no results of this bench ({error}); choose another file") from None
    if found.evaluations != evaluations:
        raise UsageProblem(
            f"{path}: its runs have {found.evaluations} evaluations, not {evaluations}; choose another file"
        )
    return found


def save(path: Path, results: Results) -> None:
    """Whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".new")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))
    draft.replace(path)
