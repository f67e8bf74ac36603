"""The population as a table: our own line API, 10,000 rows at the price of those that are seen."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from rich.cells import cell_len
from textual import events
from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from workbench_screens import formats, ordering, words
from workbench_screens.desk import Desk
from workbench_screens.lines import Line, Span, fit
from workbench_screens.pane import LineView, paint
from workbench_sessions.projection import Candidate, Projection

BIG = 2000
"""From so many rows on, sorting and filtering wait `RESORT_S` between two runs."""
RESORT_S = 0.5


class Column(Struct, frozen=True):
    """`need`: table width from which the column is shown. `key` is the sort it stands for."""

    title: str
    width: int
    cell: Callable[[Candidate, Desk], Span]
    need: int = 0
    right: bool = False
    key: str = ""


def _badges(c: Candidate, desk: Desk) -> Span:
    best = desk.projection.best
    style = "faster bold" if c.id == best else "accent" if c.decision == "review" else "muted"
    return words.badges(c, best, desk.glyphs), style


COLUMNS: tuple[Column, ...] = (
    Column("", 2, _badges),
    Column("id", 8, lambda c, d: (c.id, "bold" if c.id == d.projection.best else ""), key="id"),
    Column("gen", 4, lambda c, d: (str(c.generation), "muted"), need=84, right=True, key="gen"),
    Column("isl", 3, lambda c, d: (str(c.island), "muted"), need=84, right=True, key="isl"),
    Column("parent", 8, lambda c, d: (c.parents[0] if c.parents else formats.NOTHING, "muted"), need=100, key="parent"),
    Column("origin", 14, lambda c, d: (words.origin(c), "muted"), need=110, key="origin"),
    Column("stage", 12, lambda c, d: words.stage(c, d.glyphs), key="stage"),
    Column("speedup", 21, lambda c, d: words.speedup(c), key="speedup"),
    Column("verdict", 22, lambda c, d: words.verdict(c, d.glyphs), key="verdict"),
    Column("reason", 40, lambda c, d: (c.decision_reason or c.reason, "muted"), need=150),
)


def columns_for(width: int, longest_id: int = 8) -> list[Column]:
    """What fits: four columns at the least; the last one takes what is left."""
    chosen = [column for column in COLUMNS if width >= column.need]
    out = []
    for column in chosen:
        size = max(column.width, longest_id) if column.title in ("id", "parent") else column.width
        out.append(
            Column(column.title, size, column.cell, need=column.need, right=column.right, key=column.key),
        )
    used = sum(column.width + 1 for column in out[:-1])
    last = out[-1]
    out[-1] = Column(last.title, max(8, width - used), last.cell, right=last.right, key=last.key)
    return out


def header_row(columns: list[Column], sort: str, reverse: bool, desk: Desk) -> Line:
    out: Line = []
    for column in columns:
        text, style = column.title, "muted bold"
        if column.key and column.key == sort:
            down = ordering.SORTS[sort][1] != reverse
            text, style = f"{text}{desk.glyphs.down if down else desk.glyphs.up}", "accent bold"
        out.append((fit(text, column.width, column.right) + " ", style))
    return out


def row(candidate: Candidate, columns: list[Column], desk: Desk) -> Line:
    out: Line = []
    for column in columns:
        text, style = column.cell(candidate, desk)
        out.append((fit(text, column.width, column.right) + " ", style))
    return out


class CandidateTable(LineView, can_focus=True):
    """Keeps the person's row where it is on the screen while new ones arrive."""

    DEFAULT_CSS = """
    CandidateTable { background: transparent; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """
    BINDINGS = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("ctrl+home", "end(-1)", "First", show=False),
        Binding("end,ctrl+end", "end(1)", "Last", show=False),
    ]
    HELP = "Arrows or j/k choose a candidate, enter opens it, a click on a column's title sorts."

    class Chosen(Message):
        """The cursor moved to a candidate; None when it was let go."""

        def __init__(self, candidate: str | None) -> None:
            self.candidate = candidate
            super().__init__()

    class SortAsked(Message):
        """A column's title was clicked."""

        def __init__(self, key: str) -> None:
            self.key = key
            super().__init__()

    def __init__(self, desk: Desk, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.desk = desk
        self.ids: list[str] = []
        self._place: dict[str, int] = {}
        self._columns: list[Column] = []
        self._strips: dict[tuple[object, ...], Strip] = {}
        self._arranged: tuple[object, ...] | None = None
        self._arranged_s = float("-inf")
        self._seen: tuple[object, ...] | None = None
        self.arranges = 0

    # Following the projection

    def pulse(self) -> None:
        """The tick."""
        if not self.is_on_screen or not self.size:
            return
        width = self.scrollable_content_region.width
        key = (*self.desk.state(), width, self.desk.selected, self.desk.query, self.desk.sort, self.desk.reverse)
        if key == self._seen and self._arranged is not None and self._arranged[0] == self.desk.state():
            return
        self._seen = key
        self._arrange()
        longest = cell_len(self.ids[0]) if self.ids else 8
        self._columns = columns_for(width, longest)
        self.refresh()

    def _arrange(self) -> None:
        p, desk = self.desk.projection, self.desk
        asked = (desk.sessions, desk.query, desk.sort, desk.reverse)
        key = (desk.state(), asked)
        if key == self._arranged:
            return
        now_s = desk.clock()
        costly = len(p.candidates) > BIG and (bool(desk.query.terms) or desk.sort != "newest")
        same_question = self._arranged is not None and self._arranged[1] == asked
        if costly and same_question and now_s - self._arranged_s < RESORT_S and self._still_there(p):
            return
        self._arranged, self._arranged_s = key, now_s
        self.arranges += 1
        before = self._row_of(desk.selected)
        top = self.scroll_offset.y
        self.ids = ordering.arrange(p.candidates.values(), desk.query, desk.sort, desk.reverse)
        self._place = {}
        self.extend(len(self.ids) + 1)
        after = self._row_of(desk.selected)
        if before is not None and after is not None and after != before:
            self.scroll_to(y=max(0, top + after - before), animate=False)

    def _still_there(self, p: Projection) -> bool:
        """A seek back may have taken rows away."""
        return all(name in p.candidates for name in self.ids[:1] + self.ids[-1:]) and len(self.ids) <= len(p.candidates)

    def _row_of(self, candidate: str | None) -> int | None:
        if candidate is None:
            return None
        if not self._place:
            self._place = {name: i for i, name in enumerate(self.ids)}
        return self._place.get(candidate)

    # The cursor

    def action_move(self, by: int) -> None:
        if not self.ids:
            return
        at = self._row_of(self.desk.selected)
        if at is None:
            shown = self.desk.shown() if self.desk.selected is None else None
            at = self._row_of(shown.id) if shown is not None and by == 0 else None
            target = self.scroll_offset.y if at is None else at
        else:
            target = at + by
        self.choose(self.ids[min(len(self.ids) - 1, max(0, target))])

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.scrollable_content_region.height - 2))

    def action_end(self, by: int) -> None:
        if self.ids:
            self.choose(self.ids[0 if by < 0 else -1])

    def choose(self, candidate: str | None) -> None:
        """Moves the cursor, scrolls to it, tells the screen."""
        self.desk.selected = candidate
        at = self._row_of(candidate)
        if at is not None:
            height = self.scrollable_content_region.height
            self.scroll_to_region(Region(0, at, 1, min(2, height)), animate=False, force=True, immediate=True)
        self.post_message(self.Chosen(candidate))
        self.pulse()

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            x = 0
            for column in self._columns:
                x += column.width + 1
                if event.x < x:
                    if column.key:
                        self.post_message(self.SortAsked(column.key))
                    return
            return
        index = self.scroll_offset.y + event.y - 1
        if 0 <= index < len(self.ids):
            again = self.desk.selected == self.ids[index]
            self.choose(self.ids[index])
            if again and event.chain == 2:
                self.app.simulate_key("enter")

    # Painting

    def render_line(self, y: int) -> Strip:
        return self._line(y).apply_style(self.base)

    def _line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        desk = self.desk
        if y == 0:
            return paint(header_row(self._columns, desk.sort, desk.reverse, desk), width, desk, "panel")
        index = self.scroll_offset.y + y - 1
        if index >= len(self.ids):
            if index == 0 and self._arranged is not None:
                return paint(self._empty(), width, desk)
            return Strip.blank(width)
        candidate = desk.projection.candidates.get(self.ids[index])
        if candidate is None:
            return Strip.blank(width)
        chosen = candidate.id == desk.selected
        best = candidate.id == desk.projection.best
        key = (candidate.id, candidate.changed_seq, chosen, best, width, desk.themed, desk.sessions)
        strip = self._strips.get(key)
        if strip is None:
            if len(self._strips) > 4000:
                self._strips.clear()
            strip = paint(row(candidate, self._columns, desk), width, desk, "cursor" if chosen else "")
            self._strips[key] = strip
        return strip

    def _empty(self) -> Line:
        if self.desk.query.terms:
            return [(f" nothing matches {self.desk.query.text}; esc shows all again", "muted")]
        header = self.desk.projection.header
        waits = header.phase_reason if header.phase in ("starting", "paused") else ""
        return [(f" no candidates yet{f': {waits}' if waits else ''}", "muted")]
