"""The full screen. Imports Textual, so it is imported only when a screen will be shown."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from workbench.config import Config
from workbench.display.contract import Shown
from workbench.errors import UsageProblem
from workbench.places import Places
from workbench_screens.app import make_app
from workbench_screens.editing import TerminalEditor
from workbench_sessions.commands import CommandPort
from workbench_sessions.feed import Feed, SessionCommandPort, SessionFeed
from workbench_sessions.store import SessionSummary, bundled_sessions, delete_session, list_sessions, summarize


class FullScreen:
    """The Textual program over one session; others can be opened from its list. A `Display`."""

    def __init__(self, config: Config, places: Places) -> None:
        self._config = config
        self._places = places

    def watch(self, shown: Shown) -> None:
        ui = self._config.ui
        try:
            app = make_app(
                shown.feed,
                shown.port,
                sessions_provider=self._sessions,
                open_session=open_session,
                delete_session=delete_session,
                editor=editor(ui.editor),
                ascii=ui.ascii,
                theme=ui.theme or None,
                keymap=dict(self._config.keys),
                start=ui.start,
            )
        except ValueError as error:
            raise UsageProblem(str(error)) from None
        app.run()

    def _sessions(self) -> list[SessionSummary]:
        return [*list_sessions(self._places.sessions), *(summarize(path) for path in bundled_sessions())]


def open_session(path: Path) -> tuple[Feed, CommandPort]:
    """A session chosen from the list: live when its engine runs, else as a replay. Raises SessionError."""
    feed = SessionFeed(path, follow=True)
    if not feed.engine_alive:
        feed.seek_seq(feed.head_seq)
    return feed, SessionCommandPort(path)


def editor(configured: str) -> TerminalEditor | None:
    """The person's editor, None when there is none."""
    command = configured or os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    return TerminalEditor(command) if shlex.split(command) else None
