"""What every screen shares: the feed, the port, and what the person looks at (cursor, filter, sort). Nothing else."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from workbench_screens.colouring import colour
from workbench_screens.lines import Line
from workbench_screens.query import Query
from workbench_screens.theming import Theming
from workbench_screens.words import ASCII, UNICODE
from workbench_sessions.commands import CommandPort
from workbench_sessions.feed import Feed
from workbench_sessions.projection import Candidate, Details, PairSeries, Projection, Request
from workbench_sessions.store import SessionSummary

Clock = Callable[[], float]
"""A steadily growing clock in seconds."""


class Editor(Protocol):
    """Edits one file and returns when the person is done. `needs_terminal`: the screen must step aside."""

    needs_terminal: bool

    def edit(self, path: Path) -> None: ...


OpenSession = Callable[[Path], tuple[Feed, CommandPort]]
SessionsProvider = Callable[[], list[SessionSummary]]
DeleteSession = Callable[[Path], None]


class Desk:
    """One person's place in one session. `selected` None means: look at the best one."""

    def __init__(self, feed: Feed, port: CommandPort, clock: Clock, ascii_only: bool = False) -> None:
        self.feed = feed
        self.port = port
        self.clock = clock
        self.glyphs = ASCII if ascii_only else UNICODE
        self.theming = Theming({})
        self.themed = 0
        """Counts theme changes, so that panes know to paint again."""
        self.keys: dict[str, str] = {}
        """The person's own keys by action id."""
        self.person = _person()
        self.selected: str | None = None
        self.query = Query("")
        self.sort = "newest"
        self.reverse = False
        self.pair: tuple[str, str] | None = None
        """Two sources chosen for the diff, by candidate id or "reference"."""
        self.prompt: str | None = None
        """The opened prompt; None means: follow the newest."""
        self.answer = 0
        """Which of its answers is shown, the first is 0."""
        self.request_query = Query("")
        self.reading = False
        """Whether the transcript was asked to open its prompt, not only to show it."""
        self.drafts: dict[str, str] = {}
        """Answers by hand that were begun, by prompt."""
        self._followed = ""
        self.sessions = 0
        """Counts opened sessions, so that caches know to forget."""
        self._details: tuple[tuple[object, ...], Details] | None = None
        self._series: tuple[tuple[object, ...], PairSeries | None] | None = None
        self._coloured: dict[str, list[Line]] = {}
        self._heard: tuple[int, float] = (-1, 0.0)

    @property
    def projection(self) -> Projection:
        return self.feed.projection

    def switch(self, feed: Feed, port: CommandPort) -> None:
        """Another session at the same desk."""
        self.feed.close()
        self.feed, self.port = feed, port
        self.selected, self.pair = None, None
        self.query = self.request_query = Query("")
        self.prompt, self.answer, self._followed = None, 0, ""
        self.drafts.clear()
        self._details, self._series = None, None
        self.sessions += 1

    def state(self) -> tuple[object, ...]:
        """Changes whenever anything shown from the projection may have."""
        return self.sessions, id(self.feed.projection), self.feed.projection.seq, self.themed

    def shown(self) -> Candidate | None:
        """The candidate of the detail panes: the selected one, else the best, else the newest."""
        p = self.projection
        if self.selected is not None and self.selected in p.candidates:
            return p.candidates[self.selected]
        if p.best is not None and p.best in p.candidates:
            return p.candidates[p.best]
        return p.candidates[next(reversed(p.candidates))] if p.candidates else None

    def opened(self) -> Request | None:
        """The prompt to read: the chosen one, else the one followed until it is over, else the newest."""
        requests = self.projection.requests
        chosen = requests.get(self.prompt or "")
        if chosen is not None or not requests:
            return chosen
        followed = requests.get(self._followed)
        if followed is None or followed.state not in ("waiting", "streaming"):
            followed = requests[next(reversed(requests))]
            self._followed = followed.prompt
        return followed

    def open_prompt(self, prompt: str | None, answer: int = 0) -> None:
        if prompt != self.prompt or answer:
            self.prompt, self.answer = prompt, answer

    def details(self, candidate: Candidate) -> Details:
        """Everything of one candidate; asks the feed again only when its row changed."""
        key = (self.sessions, candidate.id, candidate.changed_seq)
        if self._details is None or self._details[0] != key:
            self._details = (key, self.feed.details(candidate.id))
        return self._details[1]

    def series(self, candidate: Candidate) -> PairSeries | None:
        """The newest pairs of one candidate, from memory or from the file."""
        kept = self.projection.pairs.get(candidate.id)
        if kept is not None:
            return kept
        key = (self.sessions, candidate.id, candidate.changed_seq)
        if self._series is None or self._series[0] != key:
            found = self.feed.pair_series(candidate.id)
            self._series = (key, found[-1] if found else None)
        return self._series[1]

    def coloured(self, sha: str) -> list[Line] | None:
        """Highlighted lines of a source, when a thread has made them already."""
        return self._coloured.get(sha)

    def keep_coloured(self, sha: str, lines: list[Line]) -> None:
        if len(self._coloured) > 64:
            self._coloured.pop(next(iter(self._coloured)))
        self._coloured[sha] = lines

    def now_s(self) -> float:
        """Unix seconds of the instant shown: the position, running on between events while an engine lives."""
        if not self.feed.live or not self.feed.engine_alive:
            return self.feed.position_at_s
        seq, at = self._heard
        if seq != self.feed.projection.seq:
            at = self.clock()
            self._heard = (self.feed.projection.seq, at)
        return self.feed.projection.at_s + max(0.0, self.clock() - at)

    def elapsed_s(self) -> float:
        """Of the session, at the instant shown."""
        return max(0.0, self.now_s() - self.feed.first_at_s)


def highlight(text: str) -> list[Line]:
    """Runs in a thread."""
    return colour(text)


def _person() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
