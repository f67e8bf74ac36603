"""How many requests an endpoint gets at once, and how often. One slowed answer slows everybody who asks there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

RECOVER_AFTER = 16
"""So many good answers in a row give back one place that a rate limit took."""


class Bucket:
    """A token bucket over a minute: `take` says how long to wait. `per_minute` 0 = no limit."""

    def __init__(self, per_minute: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60.0
        self._most = per_minute
        self._level = per_minute
        self._now = now
        self._at_s = now()

    def take(self, amount: float) -> float:
        """Takes `amount` and returns the seconds until it is really there. One amount may exceed the bucket."""
        if self._rate <= 0.0:
            return 0.0
        now_s = self._now()
        self._level = min(self._most, self._level + (now_s - self._at_s) * self._rate)
        self._at_s = now_s
        self._level -= amount
        return max(0.0, -self._level / self._rate)


class Pace:
    """Places at one endpoint: at most `concurrency`, fewer after rate limits (additive increase, halving)."""

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: float = 0.0,
        tokens_per_minute: float = 0.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = concurrency
        self._places = concurrency
        self._taken = 0
        self._good = 0
        self._now = now
        self._not_before_s = 0.0
        self._requests = Bucket(requests_per_minute, now)
        self._tokens = Bucket(tokens_per_minute, now)
        self._freed = asyncio.Event()

    @property
    def places(self) -> int:
        """How many may ask at once at present."""
        return self._places

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncIterator[None]:
        """Waits for a free place, and until a request of so many tokens is allowed."""
        while self._taken >= self._places:
            await self._freed.wait()
        self._taken += 1
        try:
            wait_s = max(self._requests.take(1.0), self._tokens.take(tokens))
            if wait_s > 0.0:
                await asyncio.sleep(wait_s)
            while (left_s := self._not_before_s - self._now()) > 0.0:
                await asyncio.sleep(left_s)
            yield
        finally:
            self._taken -= 1
            self._wake()

    def limited(self, wait_s: float) -> None:
        """A rate limit was hit: nobody asks for `wait_s`, then only half as many at once.

        Those that were under way together are refused together: that halves once.
        """
        self._good = 0
        now_s = self._now()
        if now_s >= self._not_before_s:
            self._places = max(1, self._places // 2)
        self._not_before_s = max(self._not_before_s, now_s + wait_s)

    def served(self) -> None:
        """A good answer came."""
        self._good += 1
        if self._good >= RECOVER_AFTER and self._places < self._most:
            self._good = 0
            self._places += 1
            self._wake()

    def _wake(self) -> None:
        freed, self._freed = self._freed, asyncio.Event()
        freed.set()
