"""The opened prompt on the screen, line API: it scrolls, folds, is searched, and its links lead on."""

from __future__ import annotations

import bisect

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.strip import Strip

from workbench_screens.desk import Desk
from workbench_screens.diffview import marked
from workbench_screens.document import FOLDED, Document, Kept, Stop, document
from workbench_screens.lines import Line, plain
from workbench_screens.pane import LineView, paint
from workbench_screens.reading import Reading
from workbench_sessions.projection import Request

REST_S = 0.2
"""Between two drawings of an answer that grows."""


class DocumentView(LineView, can_focus=True):
    DEFAULT_CSS = """
    DocumentView { background: transparent; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """
    BINDINGS = [
        Binding("j", "scroll_down", "Down", show=False),
        Binding("k", "scroll_up", "Up", show=False),
        Binding("tab", "stop(1)", "Next link", show=False),
        Binding("shift+tab", "stop(-1)", "Link back", show=False),
        Binding("enter", "take", "Open or fold", show=False),
        Binding("left", "turn(-1)", "Answer back", show=False),
        Binding("right", "turn(1)", "Next answer", show=False),
        Binding("ctrl+home", "scroll_home", "Top", show=False),
        Binding("ctrl+end", "scroll_end", "End", show=False),
    ]
    HELP = "tab goes from link to link, enter opens a candidate or folds a part, / searches, n and N go on."

    class Follow(Message):
        """A link was taken."""

        def __init__(self, kind: str, target: str) -> None:
            super().__init__()
            self.kind, self.target = kind, target

    def __init__(self, desk: Desk, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.desk = desk
        self.reading = Reading(desk)
        self._kept = Kept()
        self.document = Document([], (), ())
        self.folded: frozenset[str] = FOLDED
        self.stop: tuple[str, str] | None = None
        """The stop under the cursor, by kind and target."""
        self.needle = ""
        self.hits: list[int] = []
        self.hit: int | None = None
        self.draws = 0
        self._strips: dict[tuple[object, ...], Strip] = {}
        self._drawn: tuple[object, ...] | None = None
        self._shown: tuple[object, ...] = ()
        self._drawn_s = float("-inf")

    def pulse(self) -> None:
        """Draws again when what is shown changed; an answer that grows, a few times a second."""
        if not self.is_on_screen or not self.size:
            return
        desk, request = self.desk, self.desk.opened()
        width = self.scrollable_content_region.width
        if request is None:
            self._put(Document([[("no prompt yet: a model is asked when the run begins", "muted")]], (), ()))
            self._drawn, self._shown = None, ()
            return
        shown = (desk.sessions, request.prompt)
        rows = tuple(
            desk.projection.candidates[c].changed_seq for c in request.candidates if c in desk.projection.candidates
        )
        quiet = (shown, request.state, rows, desk.answer, self.folded, width, desk.themed, self._coloured(request))
        key = (*quiet, request.changed_seq, int(desk.now_s()) if request.state == "waiting" else 0)
        if key == self._drawn:
            return
        resting = self._drawn is not None and self._drawn[: len(quiet)] == quiet and desk.feed.live
        if resting and desk.clock() - self._drawn_s < REST_S:
            return
        follow = shown == self._shown and request.state == "streaming" and self._at_end()
        self._drawn, self._drawn_s = key, desk.clock()
        self._draw(request, width)
        if shown != self._shown:
            self._shown = shown
            self.stop, self.hit = None, None
            self.scroll_home(animate=False)
        elif follow:
            self.scroll_end(animate=False, immediate=True)

    def _coloured(self, request: Request) -> bool:
        return self.reading.source_to_colour(request, self.desk.answer) is None

    def _at_end(self) -> bool:
        return self.scroll_offset.y >= self.max_scroll_y - 1 and self.max_scroll_y > 0

    def _draw(self, request: Request, width: int) -> None:
        material = self.reading.material(request, self.desk.answer, max(10, width))
        self.desk.answer = material.answer if material.answers else self.desk.answer
        self.draws += 1
        self._put(document(material, width, self.folded, self.desk.now_s(), self.desk.glyphs, self._kept))

    def _put(self, made: Document) -> None:
        if not made.stops and made == self.document:
            return
        self.document = made
        self._strips.clear()
        self.hits = made.rows_with(self.needle) if self.needle else []
        self.extend(len(made.rows))
        self._refresh_rows()

    def _refresh_rows(self) -> None:
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        marks = (top, self.needle, self.hit, self.stop, self.has_focus, self.desk.themed, self.size)
        shown = [(*row, marks) for row in self.document.rows[top : top + height]]
        self.refresh_changed([*shown, *((),) * (height - len(shown))])

    def redraw(self) -> None:
        self._drawn = None
        self.pulse()

    # Links and folds

    def _place(self) -> int | None:
        return next((i for i, s in enumerate(self.document.stops) if (s.kind, s.target) == self.stop), None)

    def action_stop(self, by: int) -> None:
        stops = self.document.stops
        if not stops:
            return
        at = self._place()
        if at is None:
            rows = [stop.row for stop in stops]
            below = bisect.bisect_left(rows, self.scroll_offset.y)
            at = below if by > 0 else below - 1
        else:
            at += by
        self._choose(stops[min(len(stops) - 1, max(0, at))])

    def _choose(self, stop: Stop) -> None:
        self.stop = (stop.kind, stop.target)
        self._show(stop.row)
        self.refresh()

    def _show(self, row: int) -> None:
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if not top <= row < top + height:
            self.scroll_to(y=max(0, row - 2), animate=False, force=True, immediate=True)

    def action_take(self) -> None:
        at = self._place()
        if at is None:
            self.action_stop(1)
            return
        stop = self.document.stops[at]
        if stop.kind == "fold":
            self.fold(stop.target)
        else:
            self.post_message(self.Follow(stop.kind, stop.target))

    def fold(self, part: str) -> None:
        """Folds or opens a part, for every prompt from now on."""
        self.folded = self.folded ^ {part}
        self.redraw()
        at = self._place()
        if at is not None:
            self._show(self.document.stops[at].row)

    def action_turn(self, by: int) -> None:
        """To the next or previous of several answers."""
        self.desk.answer = max(0, self.desk.answer + by)
        self.redraw()

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y
        stop = next((one for one in self.document.stops if one.row == row), None)
        if stop is not None:
            self._choose(stop)
            self.action_take()

    # Searching

    def search(self, needle: str) -> int:
        """Looks for a text in all parts; opens those that hold it. Returns in how many rows it is."""
        self.needle = needle
        low = needle.lower()
        holding = {name for name, text in self.document.bodies if low and low in text.lower()}
        if holding & self.folded:
            self.folded = self.folded - holding
        self.redraw()
        self.hit = None
        if self.hits:
            self.next_hit(1)
        self.refresh()
        return len(self.hits)

    def next_hit(self, direction: int) -> bool:
        """To the next or previous match; False when there is none."""
        if not self.hits:
            return False
        here = self.scroll_offset.y if self.hit is None else self.hit
        if direction > 0:
            at = bisect.bisect_left(self.hits, here) if self.hit is None else bisect.bisect_right(self.hits, here)
        else:
            at = bisect.bisect_left(self.hits, here) - 1
        if not 0 <= at < len(self.hits):
            return False
        self.hit = self.hits[at]
        self._show(self.hit)
        self.refresh()
        return True

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = self.scroll_offset.y + y
        if index >= len(self.document.rows):
            return Strip.blank(width, self.base)
        place = self._place() if self.has_focus else None
        chosen = place is not None and self.document.stops[place].row == index
        base = "cursor" if chosen else "panel" if index == self.hit else ""
        key = (index, base, self.needle, width, self.desk.themed, self.base)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = paint(self._line(index), width, self.desk, base).apply_style(self.base)
        return strip

    def _line(self, index: int) -> Line:
        line = self.document.rows[index]
        low = self.needle.lower()
        at = plain(line).lower().find(low) if low else -1
        return marked(line, ((at, at + len(low)),), "reverse", "") if at >= 0 else line
