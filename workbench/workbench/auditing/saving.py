"""The end of an audit on disk: table.md, report.html, summary.json, made anew from the outcomes each time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from workbench.auditing.page import page
from workbench.auditing.rows import Outcome, natural
from workbench.auditing.summary import Group
from workbench.auditing.tables import (
    COUNT_COLUMNS,
    GROUP_COLUMNS,
    ROW_COLUMNS,
    count_cells,
    group_cells,
    headline,
    row_cells,
)
from workbench.benching.tables import markdown_table
from workbench.errors import EnvironmentProblem


class Report(Struct, frozen=True):
    """Everything the written reports say; `summary.json` is this without the outcomes."""

    input: str
    input_sha256: str
    claim: str
    device: str
    settings: dict[str, str]
    rows: int
    judged: int
    notes: list[str]
    groups: list[Group]


def ordered(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """By level, task and sample, as people count."""
    return sorted(outcomes, key=lambda o: (natural(o.level), natural(o.task), natural(o.sample), o.number))


def save(folder: Path, report: Report, outcomes: Sequence[Outcome]) -> None:
    """Writes the three files. Raises EnvironmentProblem."""
    rows = ordered(outcomes)
    title = f"Audit of {report.input}"
    used = ", ".join(f"--{name} {value}" for name, value in report.settings.items() if value)
    about = f"{report.judged} of {report.rows} rows, sha256 {report.input_sha256[:16]}, {report.device}" + (
        f", {used}" if used else ""
    )
    files = {
        "summary.json": msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n",
        "table.md": markdown(title, about, report, rows),
        "report.html": page(title, about, report.notes, rows, report.groups, report.claim),
    }
    for name, text in files.items():
        try:
            # A reader never sees half a report.
            fresh = folder / f".{name}.new"
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(folder / name)
        except OSError as error:
            raise EnvironmentProblem(f"{folder / name}: cannot be written ({error.strerror or error})") from error


def markdown(title: str, about: str, report: Report, rows: Sequence[Outcome]) -> str:
    """The tables of the audit as Markdown."""
    numbers = [cells for group in report.groups for cells in group_cells(group)]
    body = [[*row_cells(o, report.claim), o.reason[:300]] for o in rows]
    parts = [
        f"# {_plain(title)}",
        _plain(about),
        f"**{_plain(headline(report.groups))}**",
        "\n".join(f"- {_plain(note)}" for note in report.notes),
        "## Claimed against refereed",
        _table(GROUP_COLUMNS, numbers),
        "## How the rows ended",
        _table(COUNT_COLUMNS, [count_cells(group) for group in report.groups]),
        "## Rows",
        _table((*ROW_COLUMNS, "why"), body),
    ]
    return "\n\n".join(parts) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown_table(columns, [[_plain(cell) for cell in row] for row in rows])


def _plain(text: str) -> str:
    """One line that Markdown takes as it is: no markup from somebody else's file."""
    line = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\`*_[]<>#" else c for c in line)
