"""Without a screen: a line a verdict on stderr, plain or with a rich progress line, from the same Projection."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from workbench.display.contract import Reporter, Shown
from workbench.display.words import candidate_line, progress
from workbench_sessions.projection import Candidate, Projection

POLL_S = 0.25


class Headless:
    """Follows a session and reports what changes. A `Display`."""

    def __init__(self, reporter: Reporter, sleep: Callable[[float], None] = time.sleep) -> None:
        self._reporter = reporter
        self._sleep = sleep

    def watch(self, shown: Shown) -> None:
        try:
            while True:
                # Asked before the poll: what came in between is then still shown.
                ended = shown.ended()
                while shown.feed.poll(time.monotonic()):
                    self._reporter.tell(shown.feed.projection)
                if ended and shown.feed.position_seq >= shown.feed.head_seq:
                    self._reporter.tell(shown.feed.projection)
                    return
                self._sleep(POLL_S)
        finally:
            self._reporter.close()


class Changes:
    """What is new in a projection since the last look."""

    def __init__(self) -> None:
        self._seq = 0
        self._log_seq = 0
        self._phase = ""
        self._said: set[tuple[str, str | None, bool]] = set()

    def lines(self, p: Projection) -> list[str]:
        """New phases, warnings and verdicts, oldest first."""
        said: list[str] = []
        if p.header.phase != self._phase:
            self._phase = p.header.phase
            reason = p.header.phase_reason or p.header.outcome
            said.append(f"{self._phase}{': ' + reason if reason else ''}")
        for line in p.log:
            if line.seq > self._log_seq:
                self._log_seq = line.seq
                # What is wrong with one candidate stands in its own line.
                if line.level == "warning" and line.text.partition(" ")[0] not in p.candidates:
                    said.append(f"warning: {line.text}")
        fresh = [row for row in p.candidates.values() if row.changed_seq > self._seq and row.verdict is not None]
        for row in sorted(fresh, key=lambda r: r.changed_seq):
            if self._new(row):
                said.append(candidate_line(row, best=row.id == p.best))
        self._seq = p.seq
        return said

    def _new(self, row: Candidate) -> bool:
        key = (row.id, row.verdict, row.confirmed)
        if key in self._said:
            return False
        self._said.add(key)
        return True


class PlainReporter:
    """Lines only, for files and pipes; the state of the run every `every_s` seconds."""

    def __init__(self, out: TextIO | None = None, every_s: float = 10.0, clock: Callable[[], float] = time.monotonic):
        self._out = out or sys.stderr
        self._changes = Changes()
        self._every_s = every_s
        self._clock = clock
        self._told_s = clock()

    def tell(self, projection: Projection) -> None:
        for line in self._changes.lines(projection):
            print(line, file=self._out, flush=True)
        now_s = self._clock()
        if now_s - self._told_s >= self._every_s:
            self._told_s = now_s
            print(progress(projection), file=self._out, flush=True)

    def close(self) -> None:
        pass


class RichReporter:
    """A live progress line under the verdicts, for a terminal that is not taken over."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.status import Status

        self._console = Console(stderr=True, highlight=False)
        self._status = Status("starting", console=self._console, spinner="line")
        self._changes = Changes()
        self._status.start()

    def tell(self, projection: Projection) -> None:
        from rich.text import Text

        for line in self._changes.lines(projection):
            self._console.print(Text(line))
        self._status.update(Text(progress(projection)))

    def close(self) -> None:
        self._status.stop()
