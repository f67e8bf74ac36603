"""A feed over made-up events held in memory, a port that remembers, and a clock that stands still."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.widgets import Input

from workbench_screens.app import WorkbenchApp, make_app
from workbench_sessions.commands import Command
from workbench_sessions.events import ResponseReceived, ResponseStreamed, Stamped
from workbench_sessions.fold import fold
from workbench_sessions.projection import Details, Mark, PairSeries, Projection
from workbench_sessions.synthetic import Beat, timeline


class MemoryFeed:
    """The `Feed` protocol over a list; the head is where `arrive` has got to."""

    def __init__(
        self, candidates: int = 40, head: int | None = None, live: bool = True, beats: list[Beat] | None = None
    ) -> None:
        self.sources: dict[str, str] = {}
        self.all: list[Stamped] = []
        from workbench_sessions.synthetic import sha256

        for seq, beat in enumerate(beats or timeline(candidates), start=1):
            self.all.append(Stamped(seq=seq, at_s=beat.at_s, mono_s=beat.at_s, event=beat.event))
            for text in beat.sources:
                self.sources[sha256(text)] = text
        self.head_seq = len(self.all) if head is None else head
        self.live = live
        self.engine_alive = True
        self.playing = False
        self.speed = 1.0
        self.first_at_s = self.all[0].at_s
        self.projection = Projection()
        self.polls = 0
        self.closed = False
        self._to(self.head_seq if live else 1)

    @property
    def position_seq(self) -> int:
        return self.projection.seq

    @position_seq.setter
    def position_seq(self, value: int) -> None:
        raise AssertionError("only the feed moves")

    @property
    def position_at_s(self) -> float:
        return self.projection.at_s

    @position_at_s.setter
    def position_at_s(self, value: float) -> None:
        raise AssertionError("only the feed moves")

    @property
    def head_at_s(self) -> float:
        return self.all[self.head_seq - 1].at_s

    @head_at_s.setter
    def head_at_s(self, value: float) -> None:
        raise AssertionError("only the feed moves")

    def _to(self, seq: int) -> None:
        self.projection = Projection()
        for one in self.all[:seq]:
            fold(self.projection, one)

    def arrive(self, count: int) -> None:
        """So many more events are in the file."""
        before = self.head_seq
        self.head_seq = min(len(self.all), self.head_seq + count)
        if self.live:
            for one in self.all[before : self.head_seq]:
                fold(self.projection, one)

    def poll(self, now_s: float) -> bool:
        self.polls += 1
        return False

    def play(self) -> None:
        self.playing = True

    def pause(self) -> None:
        self.live = self.playing = False

    def set_speed(self, speed: float) -> None:
        self.speed = speed

    def step(self, count: int) -> None:
        self.seek_seq(self.position_seq + count)

    def seek_seq(self, seq: int) -> None:
        self.live = False
        self._to(min(max(1, seq), self.head_seq))

    def seek_time(self, at_s: float) -> None:
        self.seek_seq(sum(one.at_s <= at_s for one in self.all))

    def next_mark(self, direction: int, kind: str | None = None) -> Mark | None:
        marks = [mark for mark in self.marks() if kind is None or mark.kind == kind]
        ahead = [mark for mark in marks if (mark.seq - self.position_seq) * direction > 0]
        if not ahead:
            return None
        found = ahead[0 if direction > 0 else -1]
        self.seek_seq(found.seq)
        return found

    def go_live(self) -> None:
        self.live, self.playing = True, False
        self._to(self.head_seq)

    def marks(self) -> list[Mark]:
        whole = Projection()
        for one in self.all[: self.head_seq]:
            fold(whole, one)
        return whole.marks

    def source(self, sha: str) -> str:
        return self.sources[sha]

    def pair_series(self, candidate: str) -> list[PairSeries]:
        found = self.projection.pairs.get(candidate)
        return [found] if found is not None else []

    def details(self, candidate: str) -> Details:
        return self.projection.details[candidate]

    def streamed(self, prompt: str, after: int = 0) -> list[ResponseStreamed]:
        ahead = self.all[after : self.position_seq]
        return [s.event for s in ahead if isinstance(s.event, ResponseStreamed) and s.event.prompt == prompt]

    def answers(self, prompt: str) -> list[ResponseReceived]:
        past = self.all[: self.position_seq]
        return [s.event for s in past if isinstance(s.event, ResponseReceived) and s.event.prompt == prompt]

    def holding(self, word: str) -> set[str]:
        return {sha for sha, text in self.sources.items() if word.lower() in text.lower()}

    def close(self) -> None:
        self.closed = True


class MemoryPort:
    def __init__(self) -> None:
        self.sent: list[Command] = []

    def send(self, command: Command) -> None:
        self.sent.append(command)


class Desktop:
    """An app with its fakes."""

    def __init__(self, feed: MemoryFeed, port: MemoryPort, app: WorkbenchApp, clock: list[float]) -> None:
        self.feed, self.port, self.app, self.clock = feed, port, app, clock


class WritingEditor:
    """Edits by replacing the file's text."""

    needs_terminal = False

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.seen = ""

    def edit(self, path: Path) -> None:
        self.seen = path.read_text()
        if self.text is not None:
            path.write_text(self.text)


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No blinking, no animation."""
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    yield


@pytest.fixture
def desktop() -> Callable[..., Desktop]:
    """`desktop(feed=None, **options of the app)`; time stands still unless `clock[0]` moves."""

    def make(feed: MemoryFeed | None = None, **options: object) -> Desktop:
        feed = feed or MemoryFeed(head=700)
        port, clock = MemoryPort(), [0.0]
        app = make_app(feed, port, clock=lambda: clock[0], tick_s=0.0, **options)
        return Desktop(feed, port, app, clock)

    return make


@pytest.fixture
def memory_feed() -> type[MemoryFeed]:
    return MemoryFeed


@pytest.fixture
def writing_editor() -> type[WritingEditor]:
    return WritingEditor


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs `async def` tests: one event loop each, no plugin needed."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True
