"""The three lines that every screen has: header, transport bar, footer. Pure drawing, panes around it."""

from __future__ import annotations

from textual import events

from workbench_screens import asking, formats
from workbench_screens.actions import Act, key_text, on_screen
from workbench_screens.desk import Desk
from workbench_screens.lines import Line, fit_line, joined, spread, width_of
from workbench_screens.pane import Pane
from workbench_screens.words import MARK_STYLE, Glyphs
from workbench_sessions.projection import Mark, Projection


def generation(p: Projection) -> int:
    """Of the newest candidate."""
    return p.candidates[next(reversed(p.candidates))].generation if p.candidates else 0


def budget(p: Projection) -> str:
    """What is spent of what may be: `212/600 evals`."""
    caps = p.header.budget
    parts = [f"{p.evaluations}/{caps.evaluations} evals" if caps.evaluations is not None else f"{p.evaluations} evals"]
    if caps.seconds is not None:
        parts.append(f"{formats.clock(p.spent_seconds)}/{formats.clock(caps.seconds)}")
    return " ".join([*parts, *asking.spent(p)])


def presence(desk: Desk) -> Line:
    """LIVE or REPLAY with the time: always there, in words."""
    feed, glyphs = desk.feed, desk.glyphs
    at = formats.clock(desk.elapsed_s())
    header = desk.projection.header
    if not feed.live:
        word = "REPLAY" if feed.playing else "REPLAY (paused)"
        sign = glyphs.replay if feed.playing else glyphs.paused
        return [(f"{sign} {word} {at}", "accent bold")]
    if header.closed:
        return [(f"{glyphs.on} ENDED {at} {header.outcome}", "muted bold")]
    if not feed.engine_alive:
        return [(f"{glyphs.marks['warning']} NO ENGINE {at}", "rejected bold")]
    if header.phase == "paused":
        return [(f"{glyphs.paused} LIVE, paused {at}", "slower bold")]
    word = "LIVE" if header.phase == "running" else f"LIVE, {header.phase}"
    return [(f"{glyphs.live} {word} {at}", "faster bold")]


def header_line(desk: Desk, width: int) -> Line:
    """Task, backend, policy, generation, islands on the left; presence, budget, sandbox on the right."""
    p = desk.projection
    h = p.header
    name = h.task.name if h.task else h.name or "no session"
    facts = [h.backend, h.policy, f"gen {generation(p)}", f"{h.islands} island{'s' if h.islands != 1 else ''}"]
    sandbox: Line = [(f"sandbox {h.sandbox_level}", "muted")] if h.sandbox_level else []
    if h.sandbox_level.startswith("none"):
        sandbox = [(f"{desk.glyphs.marks['warning']} NOT SANDBOXED", "rejected bold")]
    review: Line = [("review mode", "accent")] if h.mode == "review" else []
    here = presence(desk)
    rights = (
        joined([review, here, [(budget(p), "")], sandbox]),
        joined([review, here, [(budget(p), "")]]),
        joined([here, [(budget(p), "")]]),
        here,
    )
    for right in rights:
        for count in range(len(facts), -1, -1):
            left: Line = [(" ", ""), (name, "bold"), (" · ".join(["", *filter(None, facts[:count])]), "muted")]
            if width_of(left) + width_of(right) + 2 <= width and (count >= 2 or right is here):
                return spread(left, [*right, (" ", "")], width)
    return fit_line([(" ", ""), *here], width)


class HeaderBar(Pane):
    """Never changes its height."""

    def state(self) -> tuple[object, ...]:
        feed = self.desk.feed
        return (*self.desk.state(), feed.live, feed.playing, feed.engine_alive, int(self.desk.elapsed_s()))

    def draw(self, width: int, height: int) -> list[Line]:
        return [header_line(self.desk, width)]


def rail(marks: list[Mark], at: float, first_s: float, last_s: float, width: int, glyphs: Glyphs) -> Line:
    """The time line: marks where they happened, the head of play, the rest still to come dimmed. `at` is 0..1."""
    if width <= 0:
        return []
    order = {"phase": 0, "warning": 1, "best": 2, "reject": 3, "accept": 4, "cheat": 5}
    span = max(last_s - first_s, 1e-9)
    shown: dict[int, Mark] = {}
    for mark in marks:
        place = min(width - 1, max(0, int((mark.at_s - first_s) / span * width)))
        old = shown.get(place)
        if old is None or order.get(mark.kind, 0) >= order.get(old.kind, 0):
            shown[place] = mark
    here = min(width - 1, max(0, int(at * width)))
    out: Line = []
    for i in range(width):
        future = i > here
        found = shown.get(i)
        if i == here:
            out.append((glyphs.head, "accent bold"))
        elif found is not None:
            style = MARK_STYLE.get(found.kind, "muted")
            out.append((glyphs.marks.get(found.kind, "|"), "faint" if future else style))
        else:
            out.append((glyphs.rule, "faint" if future else "muted"))
    return out


def transport_line(desk: Desk, width: int) -> Line:
    """State of play, the rail, and the keys that move it."""
    feed, glyphs = desk.feed, desk.glyphs
    total = max(0.0, feed.head_at_s - feed.first_at_s)
    at = max(0.0, feed.position_at_s - feed.first_at_s)
    ended = feed.live and desk.projection.header.closed
    word = "LIVE" if feed.live else "REPLAY" if feed.playing else "REPLAY paused"
    word = "ENDED" if ended else word
    sign = glyphs.on if ended else glyphs.live if feed.live else glyphs.replay if feed.playing else glyphs.paused
    left: Line = [
        (f" {sign} {word} ", "muted bold" if ended else "faster bold" if feed.live else "accent bold"),
        (f"{formats.clock(at)}/{formats.clock(total)} ", ""),
    ]
    if not feed.live:
        left.append((f"{formats.significant(feed.speed)}× ", "muted"))
    right: Line = [(f" #{feed.position_seq}/{feed.head_seq} ", "muted")]
    keys = " [ ] step  { } mark  * best  + - speed  g go to  L live "
    if width >= 130:
        right.append((keys, "muted"))
    room = width - width_of(left) - width_of(right)
    share = at / total if total > 0 else 1.0
    line = [*left, *rail(feed.marks(), share, feed.first_at_s, feed.head_at_s, room, glyphs), *right]
    return fit_line(line, width)


class TransportBar(Pane):
    """The replay bar; a click goes to that instant."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="transport")

    def state(self) -> tuple[object, ...]:
        feed = self.desk.feed
        moving = int(feed.position_at_s * 4), int(feed.head_at_s), feed.position_seq, feed.head_seq // 16
        return self.desk.sessions, self.desk.themed, feed.live, feed.playing, feed.speed, len(feed.marks()), moving

    def draw(self, width: int, height: int) -> list[Line]:
        return [transport_line(self.desk, width)]

    def on_click(self, event: events.Click) -> None:
        line = transport_line(self.desk, self.size.width)
        feed, glyphs = self.desk.feed, self.desk.glyphs
        signs = {glyphs.rule, glyphs.head, *glyphs.marks.values()}
        cells = [i for i, (text, _) in enumerate(line) if text in signs]
        if not cells:
            return
        before = width_of(line[: cells[0]])
        share = (event.x - before) / max(1, len(cells))
        if 0 <= share <= 1:
            feed.seek_time(feed.first_at_s + share * (feed.head_at_s - feed.first_at_s))


def footer_items(desk: Desk, screen: str) -> list[Act]:
    return [act for act in on_screen(screen) if act.shown]


def footer_line(desk: Desk, screen: str, width: int) -> tuple[Line, list[tuple[int, int, Act]]]:
    """Keys and labels, what is refused now dimmed; and the cells each takes, for clicks."""
    out: Line = []
    places: list[tuple[int, int, Act]] = []
    end: Line = [(" 1-8", "accent"), (" screens", "muted"), (" ^p", "accent"), (" palette ", "muted")]
    room = width - width_of(end)
    at = 0
    for act in footer_items(desk, screen):
        refused = act.refusal(desk) is not None
        item: Line = [
            (f" {key_text(act, desk.keys)}", "faint" if refused else "accent"),
            (f" {act.label} ", "faint" if refused else ""),
        ]
        size = width_of(item)
        if at + size > room:
            break
        out.extend(item)
        places.append((at, at + size, act))
        at += size
    return spread(out, end, width), places


class FooterBar(Pane):
    def __init__(self, desk: Desk, screen: str) -> None:
        super().__init__(desk, id="footer")
        self.screen_name = screen
        self._places: list[tuple[int, int, Act]] = []

    def state(self) -> tuple[object, ...]:
        refused = tuple(act.refusal(self.desk) is None for act in footer_items(self.desk, self.screen_name))
        return self.desk.themed, refused, tuple(self.desk.keys.items())

    def draw(self, width: int, height: int) -> list[Line]:
        line, self._places = footer_line(self.desk, self.screen_name, width)
        return [line]

    async def on_click(self, event: events.Click) -> None:
        for start, stop, act in self._places:
            if start <= event.x < stop:
                await self.screen.run_action(act.action if "." in act.action else f"app.{act.action}")
                return


class NoticeLine(Pane):
    """One quiet line under the header in narrow terminals: devices and best folded."""

    def draw(self, width: int, height: int) -> list[Line]:
        return [folded_line(self.desk, width)]


def folded_line(desk: Desk, width: int) -> Line:
    """Best, counts, and what the devices do, in one line."""
    p, glyphs = desk.projection, desk.glyphs
    best = p.candidates.get(p.best) if p.best else None
    left: Line = [(" best ", "muted")]
    if best is not None and best.confirmed:
        left.append((f"{glyphs.best} {formats.ratio(best.speedup)} {best.id}", "faster bold"))
    elif best is not None:
        left.append((f"({formats.ratio(best.speedup)}) {best.id} unconfirmed", "pending"))
    else:
        left.append(("none yet", "muted"))
    doing = [
        (f"{device.id} {glyphs.lanes[device.activity]} {device.activity}", "muted") for device in p.devices.values()
    ]
    right = joined([[item] for item in doing])
    if width_of(left) + width_of(right) + 1 > width:
        busy = sum(device.activity != "idle" for device in p.devices.values())
        right = [(f"{busy}/{len(p.devices)} devices busy", "muted")]
    return spread(left, [*right, (" ", "")], width)
