"""What every screen shares: header, body, transport bar, footer, and the tick that paints what is visible."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.screen import Screen
from textual.types import CSSPathType

from workbench_screens.bars import FooterBar, HeaderBar, TransportBar
from workbench_screens.desk import Desk
from workbench_screens.pane import Pane
from workbench_screens.table import CandidateTable


class WorkScreen(Screen[None]):
    """Subclasses give `NAME` and `body()`."""

    NAME: ClassVar[str] = ""
    CSS_PATH: ClassVar[CSSPathType | None] = "workscreen.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-middle"), (150, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk

    def compose(self) -> ComposeResult:
        yield HeaderBar(self.desk, id="header")
        yield from self.body()
        yield TransportBar(self.desk)
        yield FooterBar(self.desk, self.NAME)

    def body(self) -> ComposeResult:
        raise NotImplementedError

    def tick(self) -> None:
        """Ten times a second: each visible pane decides whether it has something new."""
        for pane in self.query(Pane):
            pane.pulse()
        for table in self.query(CandidateTable):
            table.pulse()

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.tick)
