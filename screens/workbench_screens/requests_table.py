"""All prompts as a list, line API: what is seen costs, not how many there are."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from textual import events
from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from workbench_screens import asking, formats
from workbench_screens.asking import Asked
from workbench_screens.desk import Desk
from workbench_screens.lines import Line, fit, fit_line, safe
from workbench_screens.pane import LineView, paint
from workbench_sessions.projection import Request

REARRANGE_S = 0.5
"""Between two runs of a filter over all prompts."""

BEAT_S = 0.5
"""What is under way is painted again so often: 64 answers that grow would else repaint the list with every tick."""


class Column(Struct, frozen=True):
    """`need`: the list's width from which the column is shown."""

    title: str
    width: int
    cell: Callable[[Asked, Desk], Line]
    need: int = 0
    right: bool = False


def _at(one: Asked, desk: Desk) -> Line:
    hours, minutes, seconds = formats.clock(one.request.sent_at_s - desk.projection.header.opened_at_s).split(":")
    return [(f"{minutes}:{seconds}" if hours == "00" else f"{int(hours)}h{minutes}", "muted")]


def _state(one: Asked, desk: Desk) -> Line:
    return [asking.state(one.request, desk.now_s(), desk.glyphs)]


def _took(one: Asked, desk: Desk) -> Line:
    running = one.request.state in asking.OPEN
    seconds = asking.waiting_s(one.request, desk.now_s())
    return [(f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds:.0f} s", "pending" if running else "muted")]


def _result(one: Asked, desk: Desk) -> Line:
    return asking.outcome(one, desk.glyphs, desk.now_s())


COLUMNS: tuple[Column, ...] = (
    Column("prompt", 6, lambda one, d: [(one.request.prompt, "")]),
    Column("sent", 5, _at, need=66),
    Column("patch", 6, lambda one, d: [(one.request.patch or formats.NOTHING, "muted")]),
    Column("model", 14, lambda one, d: [(safe(one.request.model), "muted")], need=92),
    Column("shown", 11, lambda one, d: [(asking.scores(one.request, d.glyphs) or formats.NOTHING, "muted")], need=58),
    Column("tokens", 11, lambda one, d: [(asking.tokens(one.request, d.glyphs), "")], need=46, right=True),
    Column("cost", 7, lambda one, d: [(formats.money(one.request.cost), "muted")], need=76, right=True),
    Column("took", 7, _took, right=True),
    Column("state", 12, _state, need=112),
    Column("came of it", 24, _result),
)


def columns_for(width: int) -> list[Column]:
    """What fits; the last one takes what is left."""
    chosen = [column for column in COLUMNS if width >= column.need]
    used = sum(column.width + 1 for column in chosen[:-1])
    last = chosen[-1]
    return [*chosen[:-1], Column(last.title, max(8, width - used), last.cell)]


def row(one: Asked, columns: list[Column], desk: Desk) -> Line:
    out: Line = []
    for column in columns:
        cell = column.cell(one, desk)
        if column.right:
            text, style = cell[0]
            out.append((fit(text, column.width, right=True) + " ", style))
        else:
            out.extend(fit_line([*cell], column.width))
            out.append((" ", ""))
    return out


class RequestsTable(LineView, can_focus=True):
    """Newest first. Keeps the person's row where it is while new prompts go out."""

    DEFAULT_CSS = """
    RequestsTable { background: transparent; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """
    BINDINGS = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("ctrl+home", "end(-1)", "First", show=False),
        Binding("end,ctrl+end", "end(1)", "Last", show=False),
    ]
    HELP = "Arrows or j/k choose a prompt, enter reads it, / filters: model:coder is:open verdict:faster cost>0.01"

    class Chosen(Message):
        """The cursor moved to a prompt; None when it was let go."""

        def __init__(self, prompt: str | None) -> None:
            super().__init__()
            self.prompt = prompt

    def __init__(self, desk: Desk, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.desk = desk
        self.ids: list[str] = []
        self.holding: dict[str, frozenset[str]] = {}
        """Hashes of texts by the words of `text:` that were looked for."""
        self.arranges = 0
        self._arranged: tuple[object, ...] | None = None
        self._arranged_s = float("-inf")
        self._place: dict[str, int] = {}
        self._painted: tuple[object, ...] | None = None
        self._strips: dict[tuple[object, ...], Strip] = {}

    def pulse(self) -> None:
        if not self.is_on_screen or not self.size:
            return
        desk = self.desk
        self._arrange()
        opened = desk.opened()
        visible = self._visible()
        beat = self._beat() if any(r.state in asking.OPEN for r in visible) else 0
        rows = tuple(self._key(r) for r in visible)
        key = (desk.sessions, self.scroll_offset.y, rows, opened.prompt if opened else None, self.size, beat)
        if key != self._painted:
            self._painted = key
            chosen = opened.prompt if opened else ""
            # The title, the rows, and what is empty below them.
            height = self.scrollable_content_region.height
            shown = [(*one, self.scroll_offset.y, r.prompt == chosen) for r, one in zip(visible, rows, strict=True)]
            fixed = (len(self.ids) if not self.ids else -1, desk.request_query.text, desk.themed, self.size)
            self.refresh_changed([fixed, *shown, *(fixed for _ in range(height - 1 - len(shown)))])

    def _beat(self) -> int:
        """Counts on while live; in a replay it is the instant itself."""
        feed = self.desk.feed
        return int(self.desk.clock() / BEAT_S) if feed.live else feed.position_seq

    def _key(self, request: Request) -> tuple[object, ...]:
        """What a row depends on, but for the cursor and the width."""
        if request.state in asking.OPEN:
            return request.prompt, request.state, self._beat()
        rows = self.desk.projection.candidates
        seqs = tuple(rows[c].changed_seq for c in request.candidates if c in rows)
        return request.prompt, request.changed_seq, seqs, self.desk.sessions, self.desk.themed

    def _visible(self) -> list[Request]:
        top = self.scroll_offset.y
        names = self.ids[top : top + self.scrollable_content_region.height]
        return [self.desk.projection.requests[n] for n in names if n in self.desk.projection.requests]

    def _arrange(self) -> None:
        desk, p = self.desk, self.desk.projection
        query = desk.request_query
        news = p.seq if query.terms else len(p.requests)
        last = next(reversed(p.requests), "")
        fixed = (desk.sessions, id(p), query.text, tuple(self.holding))
        key = (*fixed, news, last)
        if key == self._arranged:
            return
        same = self._arranged is not None and self._arranged[: len(fixed)] == fixed
        if same and query.terms and desk.feed.live and desk.clock() - self._arranged_s < REARRANGE_S:
            return
        top, anchor = self.scroll_offset.y, self._row_of(desk.prompt)
        self._arranged, self._arranged_s = key, desk.clock()
        self.arranges += 1
        rows = reversed(p.requests.values())
        if query.terms:
            self.ids = [r.prompt for r in rows if query.matches(asking.asked(p, r, self.holding))]
        else:
            self.ids = [r.prompt for r in rows]
        self._place = {}
        self.extend(len(self.ids) + 1)
        after = self._row_of(desk.prompt)
        if anchor is not None and after is not None and after != anchor:
            self.scroll_to(y=max(0, top + after - anchor), animate=False)

    def _row_of(self, prompt: str | None) -> int | None:
        if prompt is None:
            return None
        if not self._place:
            self._place = {name: i for i, name in enumerate(self.ids)}
        return self._place.get(prompt)

    # The cursor

    def action_move(self, by: int) -> None:
        if not self.ids:
            return
        opened = self.desk.opened()
        at = self._row_of(opened.prompt) if opened is not None else None
        target = self.scroll_offset.y if at is None else at + by
        self.choose(self.ids[min(len(self.ids) - 1, max(0, target))])

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.scrollable_content_region.height - 2))

    def action_end(self, by: int) -> None:
        if self.ids:
            self.choose(self.ids[0 if by < 0 else -1])

    def choose(self, prompt: str | None) -> None:
        """Moves the cursor, scrolls to it, tells the screen."""
        self.desk.open_prompt(prompt)
        self._arrange()
        at = self._row_of(prompt)
        if at is not None:
            height = self.scrollable_content_region.height
            self.scroll_to_region(Region(0, at, 1, min(2, height)), animate=False, force=True, immediate=True)
        self.post_message(self.Chosen(prompt))
        self.pulse()

    def on_click(self, event: events.Click) -> None:
        index = self.scroll_offset.y + event.y - 1
        if event.y > 0 and 0 <= index < len(self.ids):
            again = self.desk.prompt == self.ids[index]
            self.choose(self.ids[index])
            if again and event.chain == 2:
                self.app.simulate_key("enter")

    # Painting

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        desk = self.desk
        if y == 0:
            titles: Line = [(fit(c.title, c.width, c.right) + " ", "muted bold") for c in columns_for(width)]
            return paint(titles, width, desk, "panel").apply_style(self.base)
        index = self.scroll_offset.y + y - 1
        if index >= len(self.ids):
            line = self._empty() if index == 0 else []
            return paint(line, width, desk).apply_style(self.base)
        request = desk.projection.requests.get(self.ids[index])
        if request is None:
            return Strip.blank(width, self.base)
        opened = desk.opened()
        chosen = opened is not None and opened.prompt == request.prompt
        key = (*self._key(request), chosen, width, desk.themed, desk.sessions, self.base)
        strip = self._strips.get(key)
        if strip is None:
            if len(self._strips) > 2000:
                self._strips.clear()
            one = asking.asked(desk.projection, request)
            strip = paint(row(one, columns_for(width), desk), width, desk, "cursor" if chosen else "").apply_style(
                self.base
            )
            self._strips[key] = strip
        return strip

    def _empty(self) -> Line:
        if self.desk.request_query.terms:
            return [(f" nothing matches {self.desk.request_query.text}; esc shows all again", "muted")]
        policy = self.desk.projection.header.policy
        if policy in ("llm", "vllm", "manual"):
            return [(" no prompt yet", "muted")]
        return [(f" policy {policy or '?'} asks no model: there are no prompts", "muted")]
