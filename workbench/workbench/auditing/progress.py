"""What a person sees while an audit runs: a line a row, and on a terminal what is being judged and how far it is."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from workbench.auditing.rows import Outcome, Row, one_line
from workbench.auditing.tables import row_cells


def line(outcome: Outcome, claim: str) -> str:
    """One judged row in one line."""
    cells = row_cells(outcome, claim)
    said = f"{cells[0]}  claimed {cells[1]}  {cells[2]} {cells[3] if outcome.speedup is not None else ''}".rstrip()
    if cells[4]:
        said += f" [{cells[4]}]"
    reason = one_line(outcome.reason)[:160]
    return f"{said}  {reason}".rstrip()


class PlainTeller:
    """Lines only, for files and pipes."""

    def __init__(self, total: int, done: int, claim: str, out: TextIO | None = None) -> None:
        self._total, self._done, self._claim = total, done, claim
        self._out = out or sys.stderr

    def begun(self, row: Row) -> None:
        pass

    def ended(self, outcome: Outcome) -> None:
        self._done += 1
        print(f"{self._done}/{self._total} {line(outcome, self._claim)}", file=self._out, flush=True)

    def close(self) -> None:
        pass


class RichTeller:
    """A live line under the finished rows, with the time that is left."""

    def __init__(self, total: int, done: int, claim: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._claim = claim
        self._console = Console(stderr=True, highlight=False)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._bar = self._progress.add_task("starting", total=total, completed=done)
        self._progress.start()
        self._begun_s: dict[str, float] = {}

    def begun(self, row: Row) -> None:
        self._begun_s[row.key] = time.monotonic()
        self._describe()

    def ended(self, outcome: Outcome) -> None:
        from rich.text import Text

        self._begun_s.pop(outcome.key, None)
        self._progress.console.print(Text(line(outcome, self._claim)))
        self._progress.advance(self._bar)
        self._describe()

    def close(self) -> None:
        self._progress.stop()

    def _describe(self) -> None:
        self._progress.update(self._bar, description=" ".join(self._begun_s) or "…")
