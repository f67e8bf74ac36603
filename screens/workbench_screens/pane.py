"""The one kind of live widget: lines drawn from the desk, painted again only when their state changed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from workbench_screens.desk import Desk
from workbench_screens.lines import Line, fit_line, safe


def paint(line: Line, width: int, desk: Desk, base: str = "") -> Strip:
    """A line as terminal cells, exactly `width` wide. `base` is mixed under every span (a cursor row)."""
    style = desk.theming.style
    # A terminal obeys control characters: what models, compilers and candidates say must not reach it as they are.
    spans = fit_line([(safe(text), word) for text, word in line], width)
    return Strip([Segment(text, style(f"{word} {base}" if base else word)) for text, word in spans], width)


class LineView(ScrollView):
    """A widget that draws its lines itself, in `render_line`. `base` is its own style, looked up once a painting."""

    base = Style.null()
    _asked: Sequence[object] = ()

    def refresh_changed(self, rows: Sequence[object]) -> None:
        """Paints again only the rows that differ from those of the last call. `rows`: what each one shows, from the
        top of the view on. A whole repaint costs ten times what one row does.
        """
        before, self._asked = self._asked, rows
        if len(before) != len(rows):
            self.refresh()
            return
        changed = [y for y, (old, new) in enumerate(zip(before, rows, strict=True)) if old != new]
        if len(changed) * 2 > len(rows):
            self.refresh()
        elif changed:
            width = self.scrollable_content_region.width
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def render_lines(self, crop: Region) -> list[Strip]:
        self.base = self.rich_style
        return super().render_lines(crop)

    def extend(self, height: int) -> None:
        """A new number of lines, for a view of fixed place whose scrollbar always shows.

        Setting `virtual_size` would lay the whole screen out again, with every line that an answer grows.
        """
        size = Size(self.scrollable_content_region.width, height)
        if self.virtual_size != size:
            self.set_reactive(Widget.virtual_size, size)
            self._scroll_update(size)


class Pane(LineView, can_focus=False):
    """Subclasses draw lines; those beyond the height scroll. Costs nothing while hidden or unchanged."""

    DEFAULT_CSS = """
    Pane { height: auto; background: transparent; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """

    def __init__(self, desk: Desk, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.desk = desk
        self._lines: list[Line] = []
        self._drawn: tuple[object, ...] | None = None
        self._urgent: tuple[object, ...] = ()
        self._drawn_s = float("-inf")
        self.rest_s = 0.0
        """Seconds between two drawings while live: costly panes need no ten a second."""
        self.draws = 0
        """How often it drew: tests count these, not milliseconds."""

    def state(self) -> tuple[object, ...]:
        """Whatever the lines depend on. Compared by value."""
        return self.desk.state()

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines for a width and height in cells."""
        raise NotImplementedError

    def urgent(self) -> tuple[object, ...]:
        """The part of the state that never waits for `rest_s`: what the person did."""
        return self.desk.sessions, self.desk.themed, self.desk.feed.live, self.desk.selected

    def pulse(self) -> None:
        """The tick: draws again when visible and changed, not sooner than `rest_s` after the last time."""
        if not self.is_on_screen or not self.size:
            return
        size = self.scrollable_content_region.size
        urgent = (*self.urgent(), size.width, size.height)
        resting = self.rest_s > 0 and self.desk.clock() - self._drawn_s < self.rest_s
        if resting and urgent == self._urgent and self._drawn is not None and self.desk.feed.live:
            return
        key = (*self.state(), size.width, size.height)
        if key != self._drawn:
            self._drawn, self._urgent, self._drawn_s = key, urgent, self.desk.clock()
            self._redraw(size.width, size.height)

    def repaint(self) -> None:
        """Draws again at once, whatever the state."""
        self._drawn = None
        self.pulse()

    def on_resize(self) -> None:
        self.pulse()

    def on_show(self) -> None:
        self.pulse()

    def on_mount(self) -> None:
        self.call_after_refresh(self.pulse)

    def _redraw(self, width: int, height: int) -> None:
        self.draws += 1
        self._lines = self.draw(width, height)
        size = Size(width, len(self._lines))
        if self.virtual_size != size:
            self.virtual_size = size
        top = self.scroll_offset.y
        shown = [(*line, top, self.desk.themed) for line in self._lines[top : top + height]]
        self.refresh_changed([*shown, *((),) * (height - len(shown))])

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = self.scroll_offset.y + y
        base = self.base
        if index >= len(self._lines):
            return Strip.blank(width, base)
        return paint(self._lines[index], width, self.desk).apply_style(base)
