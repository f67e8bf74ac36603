"""Moving through time: play, step, marks, go to, live."""

from __future__ import annotations

from workbench_screens import formats
from workbench_screens.deciding import DecidingApp
from workbench_screens.desk import Desk
from workbench_screens.dialogs import AskDialog

SPEEDS = (0.25, 64.0)


class Nowhere(ValueError):
    """A place that does not exist; `str()` says what would do."""


def go(desk: Desk, text: str) -> str:
    """Goes to `1:30` or `90s` of the session, event `#1200` or `1200`, or the birth of a candidate.

    Returns what was reached. Raises `Nowhere`.
    """
    text = text.strip()
    feed = desk.feed
    candidate = desk.projection.candidates.get(text)
    if candidate is not None:
        desk.selected = candidate.id
        if feed.live:
            return f"{candidate.id} chosen"
        feed.seek_seq(max(candidate.changed_seq, candidate.proposed_seq))
        return f"{candidate.id} at its last change"
    number = text.removeprefix("#")
    if number.isdecimal():
        feed.seek_seq(int(number))
        return f"event {feed.position_seq}"
    at = formats.parse_clock(text)
    if at is not None:
        feed.seek_time(feed.first_at_s + at)
        return formats.clock(feed.position_at_s - feed.first_at_s)
    raise Nowhere(f"{text!r} is no time (1:30), event (#1200) or candidate known at this instant")


class MovingApp(DecidingApp):
    def action_pause(self) -> None:
        feed = self.desk.feed
        if feed.live:
            self.pause_engine()
        elif feed.playing:
            feed.pause()
        else:
            feed.play()
        self.paint()

    def action_step(self, count: int) -> None:
        self.desk.feed.step(count)
        self.paint()

    def action_mark(self, direction: int, kind: str | None = None) -> None:
        found = self.desk.feed.next_mark(direction, kind)
        if found is None:
            word = "new best" if kind == "best" else "mark"
            self.tell(f"no {'further' if direction > 0 else 'earlier'} {word}")
        else:
            self.clear_notifications()
            self.tell(f"{formats.clock(found.at_s - self.desk.feed.first_at_s)} {found.text}", title=found.kind)
        self.paint()

    def action_speed(self, factor: float) -> None:
        feed = self.desk.feed
        low, high = SPEEDS
        feed.set_speed(min(high, max(low, feed.speed * factor)))
        self.paint()

    def action_edge(self, direction: int) -> None:
        feed = self.desk.feed
        feed.seek_seq(0 if direction < 0 else feed.head_seq)
        self.paint()

    def action_go_live(self) -> None:
        self.desk.feed.go_live()
        self.paint()

    async def action_diff(self) -> None:
        """The shown candidate against the reference."""
        if not self.refused("diff"):
            self.desk.pair = None
            await self.run_action("app.show('diff')")

    async def action_transcript(self) -> None:
        """The prompt and the answer that the shown candidate came of."""
        shown = self.desk.shown()
        if not self.refused("transcript") and shown is not None:
            self.desk.open_prompt(shown.origin.prompt, shown.origin.answer or 0)
            self.desk.reading = True
            await self.run_action("app.show('transcript')")
            self.paint()

    def action_goto(self) -> None:
        def answered(text: str | None) -> None:
            if not text:
                return
            try:
                self.tell(go(self.desk, text))
            except Nowhere as error:
                self.tell(str(error), title="Go to", wrong=True)
            self.paint()

        self.push_screen(AskDialog("Go to", "1:30, #1200 or a candidate"), answered)

    def paint(self) -> None:
        """Shows a change that the person made without waiting for the tick."""
        raise NotImplementedError
