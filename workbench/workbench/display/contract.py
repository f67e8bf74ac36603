"""The display protocol. What is shown always comes from the `Projection` of a feed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from workbench_sessions.commands import CommandPort
from workbench_sessions.feed import Feed
from workbench_sessions.projection import Projection


class Shown(Struct, frozen=True):
    """A session to show. `ended` says that nothing more will come: the engine is gone or was never there."""

    path: Path
    feed: Feed
    port: CommandPort
    ended: Callable[[], bool]


class Display(Protocol):
    """Shows a session until it has ended, or until the person leaves. Raises KeyboardInterrupt on ^C."""

    def watch(self, shown: Shown) -> None: ...


class Reporter(Protocol):
    """The part of a headless display that writes: told of each new state, from the event loop of `watch`."""

    def tell(self, projection: Projection) -> None: ...

    def close(self) -> None: ...
