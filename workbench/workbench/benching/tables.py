"""Tables of the bench drivers, as text or Markdown; pure."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.benching.runs import Finished
from workbench.display.words import ratio, seconds

TASK_COLUMNS = ("task", "evaluations", "eager", "best speedup", "confirmed", "verdicts", "first FASTER")


def task_cells(run: Finished) -> list[str]:
    """One row of `bench tasks`."""
    best = ratio(run.best)
    if run.best is not None and run.lower is not None and run.upper is not None:
        best += f" [{run.lower:.2f} {run.upper:.2f}]"
    said = " ".join(f"{count} {name}" for name, count in run.verdicts.items() if count)
    first = f"{run.first_faster_s:.0f} s" if run.first_faster_s is not None else "—"
    confirmed = "yes" if run.confirmed else "no"
    return [run.task, str(run.evaluations), seconds(run.reference_s), best, confirmed, said, first]


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned with spaces."""
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (columns, *rows)]
    return "\n".join(line.rstrip() for line in lines)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """As Markdown reads it."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)
