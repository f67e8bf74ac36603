"""Waiting for a condition over the conductor's state, without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Changed:
    """Wakes everybody who waits whenever something changed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self) -> None:
        """Returns at the next `notify`."""
        await self._event.wait()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns once `condition()` is true; it is looked at after every `notify`."""
        while not condition():
            await self._event.wait()
