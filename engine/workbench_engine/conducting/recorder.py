"""The one writer of events: facts are buffered for a moment and stored in batches, in the order they were said."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from workbench_sessions.commands import Command
from workbench_sessions.errors import SessionLocked
from workbench_sessions.events import Event
from workbench_sessions.log import SessionReader, SessionWriter
from workbench_sessions.projection import Projection

LATENCY_S = 0.03


class Recorder:
    """Stores events. All methods are called from the event loop's thread."""

    def __init__(self, writer: SessionWriter) -> None:
        self._writer = writer
        self._buffer: list[Event] = []
        self._waiting = asyncio.Event()
        self._reader: SessionReader | None = None

    @property
    def projection(self) -> Projection:
        """The state after everything said so far: stores what is buffered first."""
        self.flush()
        return self._writer.projection

    @property
    def path(self) -> Path:
        """The session file."""
        return self._writer.path

    def emit(self, event: Event) -> None:
        """Stored within `LATENCY_S`. Never raises: a full disk shows at the next flush."""
        self._buffer.append(event)
        self._waiting.set()

    def record(self, events: Iterable[Event]) -> None:
        """Stored when this returns, all of `events` in one transaction. Raises SessionError."""
        self._buffer.extend(events)
        self.flush()

    def flush(self) -> None:
        """Stores what is buffered; keeps it when that fails. Raises SessionError."""
        if self._buffer:
            self._writer.append(self._buffer)
            self._buffer = []
        self._waiting.clear()

    async def run(self) -> None:
        """Stores forever. Raises SessionError when the file cannot take more."""
        while True:
            await self._waiting.wait()
            await asyncio.sleep(LATENCY_S)
            self.flush()

    def put_source(self, text: str) -> str:
        return self._writer.put_source(text)

    def source(self, sha256: str) -> str:
        """A stored text. Raises SourceMissing."""
        if self._reader is None:
            self._reader = SessionReader(self._writer.path)
        return self._reader.source(sha256)

    def put_state(self, key: str, value: bytes) -> None:
        self._writer.put_state(key, value)

    def get_state(self, key: str) -> bytes | None:
        return self._writer.get_state(key)

    def take_commands(self) -> list[tuple[int, Command]]:
        """Commands not taken yet; none when the file is busy, they come with the next call."""
        try:
            return self._writer.take_commands()
        except SessionLocked:
            return []

    def close(self) -> None:
        """Lets go of the file, whatever state it is in."""
        if self._reader is not None:
            self._reader.close()
        self._writer.close()
