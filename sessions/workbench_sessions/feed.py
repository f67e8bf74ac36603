"""What screens read: one feed, the same for a live session, an attached one and a replay.

A feed has a *head* (the last event in the file, which an engine may move) and a *position* (what is shown). They are
independent: looking back while the engine goes on is normal use. `projection` is the state at the position.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from workbench_sessions.commands import Command
from workbench_sessions.events import ResponseReceived, ResponseStreamed, Stamped
from workbench_sessions.fold import fold
from workbench_sessions.lock import engine_alive
from workbench_sessions.log import send_command
from workbench_sessions.projection import Details, Mark, PairSeries, Projection
from workbench_sessions.reader import SessionReader

IDLE_GAP_S = 2.0
"""A silence longer than this is played in this time (at speed 1)."""

EVENTS_PER_POLL = 2000
"""A poll folds at most so many, to leave the screen its frame; more are jumped over by a checkpoint."""

TICK_MAX_S = 1.0
"""A poll that comes late (a suspended terminal) does not play more than this at once."""

ALIVE_EVERY_S = 0.5


class Feed(Protocol):
    """All times in unix seconds except `now_s` of `poll`, which is any steadily growing clock (monotonic)."""

    projection: Projection
    live: bool
    engine_alive: bool
    head_seq: int
    position_seq: int
    position_at_s: float
    first_at_s: float
    head_at_s: float
    playing: bool
    speed: float

    def poll(self, now_s: float) -> bool:
        """Moves on: follows the head when live, plays when playing. True when anything shown may have changed."""

    def play(self) -> None: ...
    def pause(self) -> None: ...
    def set_speed(self, speed: float) -> None: ...
    def step(self, count: int) -> None: ...
    def seek_seq(self, seq: int) -> None: ...
    def seek_time(self, at_s: float) -> None: ...
    def next_mark(self, direction: int, kind: str | None = None) -> Mark | None: ...
    def go_live(self) -> None: ...
    def marks(self) -> list[Mark]: ...
    def source(self, sha: str) -> str: ...
    def pair_series(self, candidate: str) -> list[PairSeries]: ...
    def details(self, candidate: str) -> Details: ...
    def streamed(self, prompt: str, after: int = 0) -> list[ResponseStreamed]: ...
    def answers(self, prompt: str) -> list[ResponseReceived]: ...
    def holding(self, word: str) -> set[str]: ...
    def close(self) -> None: ...


class SessionFeed:
    """A `Feed` on a session file.

    `follow` starts at the head, live; otherwise the feed starts paused at the first event, a replay. Raises the errors
    of `workbench_sessions.errors` when opened.
    """

    def __init__(self, path: Path | str, follow: bool) -> None:
        self.path = Path(path)
        self._reader = SessionReader(self.path)
        self._version = self._reader.data_version()
        self.head_seq = self._reader.head_seq()
        self._head = self._reader.project_at(self.head_seq)
        self.first_at_s = self._reader.at_of(self._reader.first_seq())
        self.head_at_s = self._head.at_s
        self.engine_alive = engine_alive(self.path)
        self.speed = 1.0
        self.playing = False
        self.live = follow
        self.projection = self._head if follow else self._reader.project_at(self._reader.first_seq())
        self._arrived()
        self._ahead: list[Stamped] = []
        self._polled_s: float | None = None
        self._asked_alive_s: float | None = None

    def poll(self, now_s: float) -> bool:
        """See `Feed`. Costs one pragma when nothing happened."""
        elapsed_s = 0.0 if self._polled_s is None else min(max(now_s - self._polled_s, 0.0), TICK_MAX_S)
        self._polled_s = now_s
        changed = self._look_alive(now_s)
        if self._follow_head():
            changed = True
        if self.playing:
            changed = self._advance(elapsed_s * self.speed) or changed
        return changed

    def play(self) -> None:
        """Plays from the position; at the end of a session, from its beginning."""
        if self.live:
            return
        if self.position_seq >= self.head_seq and not self.engine_alive:
            self.seek_seq(0)
        self.playing = True

    def pause(self) -> None:
        """Stays where it is, even while the engine goes on."""
        if self.live:
            self._leave_live()
        self.playing = False

    def set_speed(self, speed: float) -> None:
        """Recorded seconds a second; raises `ValueError` unless > 0."""
        if not speed > 0:
            raise ValueError(f"speed must be above 0, not {speed}")
        self.speed = speed

    def step(self, count: int) -> None:
        """`count` events on (or back, when negative); pauses."""
        target = self.position_seq + count
        self.pause()
        if 0 < count <= EVENTS_PER_POLL:
            for one in self._reader.events(self.position_seq, count):
                fold(self.projection, one)
            self._arrived()
        else:
            self.seek_seq(target)

    def seek_seq(self, seq: int) -> None:
        """To just after event `seq`, held within the session. Leaves live; keeps playing if it did."""
        seq = min(max(seq, min(1, self.head_seq)), self.head_seq)
        self.live = False
        self.projection = self._reader.project_at(seq)
        self._arrived()

    def seek_time(self, at_s: float) -> None:
        """To the last event at or before `at_s`."""
        self.seek_seq(self._reader.seq_at_time(at_s))

    def next_mark(self, direction: int, kind: str | None = None) -> Mark | None:
        """To the next (`direction` > 0) or previous mark, of one kind if given. Stays put without one."""
        marks = [mark for mark in self._head.marks if kind is None or mark.kind == kind]
        if direction > 0:
            found = next((mark for mark in marks if mark.seq > self.position_seq), None)
        else:
            found = next((mark for mark in reversed(marks) if mark.seq < self.position_seq), None)
        if found is not None:
            self.seek_seq(found.seq)
        return found

    def go_live(self) -> None:
        """To the head, following it from now on."""
        self.live, self.playing = True, False
        self.projection = self._head
        self._arrived()

    def marks(self) -> list[Mark]:
        """All marks up to the head, wherever the position is."""
        return self._head.marks

    def head_projection(self) -> Projection:
        """The state at the head: for drawing what is yet to come dimmed. Read only."""
        return self._head

    def source(self, sha: str) -> str:
        return self._reader.source(sha)

    def pair_series(self, candidate: str) -> list[PairSeries]:
        """All pairs up to the position."""
        return self._reader.pair_series(candidate, self.position_seq)

    def details(self, candidate: str) -> Details:
        """Everything of one candidate up to the position."""
        return self._reader.details(candidate, self.position_seq)

    def streamed(self, prompt: str, after: int = 0) -> list[ResponseStreamed]:
        """Pieces of a prompt's first answer after event `after`, up to the position."""
        return self._reader.streamed(prompt, after, self.position_seq)

    def answers(self, prompt: str) -> list[ResponseReceived]:
        """Whole answers to a prompt up to the position."""
        return self._reader.answers(prompt, self.position_seq)

    def holding(self, word: str) -> set[str]:
        """Hashes of the stored texts that contain a word; may be called from a thread."""
        return self._reader.holding(word)

    def close(self) -> None:
        self._reader.close()

    def _look_alive(self, now_s: float) -> bool:
        if self._asked_alive_s is not None and now_s - self._asked_alive_s < ALIVE_EVERY_S:
            return False
        self._asked_alive_s = now_s
        alive = engine_alive(self.path)
        changed, self.engine_alive = alive != self.engine_alive, alive
        return changed

    def _follow_head(self) -> bool:
        version = self._reader.data_version()
        if version == self._version and self._head.seq >= self.head_seq:
            return False
        self._version = version
        self.head_seq = self._reader.head_seq()
        if self.head_seq <= self._head.seq:
            return False
        if self.head_seq - self._head.seq > EVENTS_PER_POLL:
            self._head = self._reader.project_at(self.head_seq)
        else:
            for one in self._reader.events(self._head.seq, EVENTS_PER_POLL):
                fold(self._head, one)
        # An append may have come between the two reads.
        self.head_seq = max(self.head_seq, self._head.seq)
        self.head_at_s = self._head.at_s
        if not self.first_at_s:
            self.first_at_s = self._reader.at_of(self._reader.first_seq())
        if self.live:
            self.projection = self._head
            self._arrived()
        return True

    def _leave_live(self) -> None:
        # The head's projection goes on changing: the position needs one of its own.
        self.live = False
        self.projection = self._reader.project_at(self._head.seq)
        self._arrived()

    def _arrived(self) -> None:
        self.position_seq = self.projection.seq
        self.position_at_s = self.projection.at_s
        self._into_gap_s = 0.0
        self._ahead = []

    def _advance(self, played_s: float) -> bool:
        """Plays `played_s` seconds of recorded time with long silences shortened."""
        before = (self.position_seq, self.position_at_s, self.playing)
        left_s = self._into_gap_s + played_s
        for _ in range(EVENTS_PER_POLL):
            if not self._ahead:
                # Popped from the end.
                self._ahead = self._reader.events(self.position_seq, 500)[::-1]
            if not self._ahead:
                # Caught up: with a running engine the replay becomes the live view, else it has ended.
                left_s = 0.0
                if self.engine_alive:
                    self.go_live()
                    return True
                self.playing = False
                break
            gap_s = self._ahead[-1].at_s - self.projection.at_s
            shown_s = min(gap_s, IDLE_GAP_S)
            if left_s < shown_s:
                self.position_at_s = self.projection.at_s + left_s * gap_s / shown_s
                break
            left_s -= shown_s
            fold(self.projection, self._ahead.pop())
            self.position_seq, self.position_at_s = self.projection.seq, self.projection.at_s
        else:
            left_s = 0.0
        self._into_gap_s = left_s
        return before != (self.position_seq, self.position_at_s, self.playing)


class SessionCommandPort:
    """A `CommandPort` on a session file: leaves each wish there for the engine."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def send(self, command: Command) -> None:
        """Raises the errors of `workbench_sessions.errors`."""
        send_command(self.path, command)
