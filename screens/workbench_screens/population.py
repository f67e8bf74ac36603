"""The home of a session: all candidates, what runs now, and the shown candidate."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.css.query import NoMatches
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input

from workbench_screens import ordering
from workbench_screens.actions import bindings
from workbench_screens.bars import NoticeLine
from workbench_screens.desk import Desk
from workbench_screens.detail import DetailPane
from workbench_screens.overview import BestStrip, DevicesStrip, NowStrip
from workbench_screens.query import Query, QueryError, parse
from workbench_screens.table import CandidateTable
from workbench_screens.workscreen import WorkScreen

REVIEW = "is:review"


def boxed(widget: Widget, title: str) -> Widget:
    widget.border_title = title
    widget.add_class("box")
    return widget


class PopulationScreen(WorkScreen):
    NAME = "population"
    CSS_PATH = ["workscreen.tcss", "population.tcss"]
    BINDINGS = bindings("population")

    def body(self) -> ComposeResult:
        yield NoticeLine(self.desk, id="folded")
        with Horizontal(id="overview"):
            yield boxed(DevicesStrip(self.desk, id="devices-strip"), "Devices")
            yield boxed(BestStrip(self.desk, id="best-strip"), "Best so far")
            yield boxed(NowStrip(self.desk, id="now-strip"), "Now")
        with Horizontal(id="middle"):
            with boxed(Vertical(id="left"), "Candidates"):
                yield CandidateTable(self.desk, id="candidates")
                yield Input(placeholder="verdict:faster island:2 speedup>1.5 text", id="filter", compact=True)
            yield boxed(DetailPane(self.desk, id="detail"), "Candidate")

    def on_mount(self) -> None:
        self.query_one(CandidateTable).focus()
        self._retitle()

    def tick(self) -> None:
        super().tick()
        self._retitle()

    def _retitle(self) -> None:
        try:
            table, left = self.query_one(CandidateTable), self.query_one("#left")
            detail = self.query_one("#detail")
        except NoMatches:
            return
        total = len(self.desk.projection.candidates)
        text = f"Candidates {len(table.ids)}/{total}" if self.desk.query.terms else f"Candidates {total}"
        if self.desk.query.terms:
            text += f"  filter: {self.desk.query.text}".replace("[", "(").replace("]", ")")
        if left.border_title != text:
            left.border_title = text
        word = "Chosen" if self.desk.selected else "Best" if self.desk.projection.best else "Newest"
        if detail.border_title != word:
            detail.border_title = word

    # Filter and sort

    def action_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.add_class("-open")
        box.value = self.desk.query.text
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filters while typing; a filter that means nothing yet leaves the last one standing."""
        try:
            self._ask(parse(event.value))
            event.input.border_subtitle = ""
        except QueryError:
            pass

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            self._ask(parse(event.value))
        except QueryError as error:
            self.notify(str(error), title="Filter", severity="error", markup=False)
            return
        self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("-open")
        self.query_one(CandidateTable).focus()

    def _ask(self, query: Query) -> None:
        if query.text != self.desk.query.text:
            self.desk.query = query
            self.query_one(CandidateTable).pulse()
            self._retitle()

    def action_review_queue(self) -> None:
        self._ask(Query("") if self.desk.query.text == REVIEW else parse(REVIEW))

    def action_sort(self) -> None:
        names = list(ordering.SORTS)
        self._sort(names[(names.index(self.desk.sort) + 1) % len(names)])

    def action_reverse(self) -> None:
        self.desk.reverse = not self.desk.reverse
        self.query_one(CandidateTable).pulse()

    def on_candidate_table_sort_asked(self, event: CandidateTable.SortAsked) -> None:
        if event.key == self.desk.sort:
            self.action_reverse()
        else:
            self._sort(event.key)

    def _sort(self, name: str) -> None:
        self.desk.sort, self.desk.reverse = name, False
        self.query_one(CandidateTable).pulse()

    # One layer back

    def action_loosen(self) -> None:
        if self.query_one("#filter", Input).has_class("-open"):
            self._close_filter()
        elif self.desk.query.terms:
            self._ask(Query(""))
        else:
            self.query_one(CandidateTable).choose(None)
            self._repaint_detail()

    def on_candidate_table_chosen(self, event: CandidateTable.Chosen) -> None:
        self._repaint_detail()

    def _repaint_detail(self) -> None:
        pane = self.query_one("#detail", DetailPane)
        pane.scroll_home(animate=False)
        pane.pulse()
        self._retitle()

    def action_detail(self) -> None:
        if self.desk.shown() is not None:
            self.app.push_screen(DetailDialog(self.desk))


class DetailDialog(ModalScreen[None]):
    """The shown candidate at full size. Esc or enter goes back."""

    DEFAULT_CSS = """
    DetailDialog { align: center middle; }
    DetailDialog DetailPane { width: 90%; max-width: 130; height: 92%; border: round $accent; padding: 0 1;
        background: $background; overflow-y: auto; }
    """
    BINDINGS = [("escape,enter,q", "dismiss", "Back"), ("t", "transcript", "Transcript")]

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk

    def compose(self) -> ComposeResult:
        pane = DetailPane(self.desk, full=True)
        pane.border_title = "esc goes back, arrows scroll"
        yield pane

    def on_mount(self) -> None:
        self.query_one(DetailPane).focus()

    def tick(self) -> None:
        self.query_one(DetailPane).pulse()

    async def action_transcript(self) -> None:
        app = self.app
        self.dismiss(None)
        await app.run_action("app.transcript")
