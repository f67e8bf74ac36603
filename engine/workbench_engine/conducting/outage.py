"""A policy that cannot propose for a while: the run waits, one call at a time tries again, then all go on."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from workbench_engine.llm.backoff import Backoff
from workbench_engine.policies.contract import PolicyUnavailable

PROBES = Backoff(first_s=2.0, factor=2.0, longest_s=60.0, least_s=0.5)


class Outage:
    """Who waits for the policy. `changed` is called when an outage begins (with its reason) and ends (with "")."""

    def __init__(
        self,
        changed: Callable[[str], None],
        patience_s: float | None = None,
        backoff: Backoff | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`patience_s` None waits for ever."""
        self._changed = changed
        self._patience_s = patience_s
        self._backoff = backoff or PROBES
        self._now = now
        self._rng = random.Random()
        self._since_s = 0.0
        self._probing = False
        self._attempt = 0
        self._wake = asyncio.Event()
        self.reason = ""

    @property
    def on(self) -> bool:
        """Whether nothing can be asked at present."""
        return bool(self.reason)

    async def wait(self, gone: PolicyUnavailable, probed: bool) -> bool:
        """To be called when a call failed; `probed`: it was the one that tries. Returns when to call again: whether
        the caller is now the one that tries. Raises `gone` when patience is at its end.
        """
        if not self.on:
            self._since_s, self._attempt = self._now(), 0
            self.reason = str(gone)
            self._changed(self.reason)
        if probed:
            self._probing = False
        if self._patience_s is not None and self._now() - self._since_s >= self._patience_s:
            raise gone
        while self.on:
            if not self._probing:
                self._probing = True
                delay_s = self._backoff.delay_s(self._attempt, self._rng, gone.retry_after_s)
                self._attempt += 1
                if self._patience_s is not None:
                    delay_s = min(delay_s, max(0.0, self._since_s + self._patience_s - self._now()))
                try:
                    async with asyncio.timeout(delay_s):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                except asyncio.CancelledError:
                    self._probing = False
                    raise
                return self.on
            await self._wake.wait()
        return False

    def over(self) -> None:
        """A call went well."""
        self._probing = False
        if self.on:
            self.reason = ""
            self._changed("")
        self.try_now()

    def try_now(self) -> None:
        """Whoever waits to try again does so at once."""
        self._attempt = 0
        wake, self._wake = self._wake, asyncio.Event()
        wake.set()

    def given_up(self) -> None:
        """The one that tried ended in another way."""
        self._probing = False
        self.try_now()
