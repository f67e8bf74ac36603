"""Where the time of one verdict goes."""

from __future__ import annotations

import time
from collections.abc import Callable


class Stopwatch:
    """Names stretches of time as they end. What was named twice is added up."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_s = clock()
        self.laps_s: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Everything since the last lap was `name`."""
        now_s = self._clock()
        self.laps_s[name] = self.laps_s.get(name, 0.0) + now_s - self._last_s
        self._last_s = now_s
