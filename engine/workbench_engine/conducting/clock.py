"""Running time: what a budget in seconds counts. Pauses do not count."""

from __future__ import annotations

import time
from collections.abc import Callable


class RunClock:
    """Seconds spent running, on a monotonic clock, on top of `spent_s` of earlier engines."""

    def __init__(self, spent_s: float = 0.0, now: Callable[[], float] = time.monotonic) -> None:
        self._spent_s = spent_s
        self._now = now
        self._since: float | None = None

    @property
    def spent_s(self) -> float:
        running = 0.0 if self._since is None else self._now() - self._since
        return self._spent_s + running

    def start(self) -> None:
        if self._since is None:
            self._since = self._now()

    def stop(self) -> None:
        self._spent_s, self._since = self.spent_s, None
