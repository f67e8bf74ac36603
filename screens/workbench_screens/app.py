"""The program's face: modes, one tick, themes, and the keys from the action table."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from textual.app import SystemCommand
from textual.binding import Keymap
from textual.screen import Screen

from workbench_screens.actions import ACTIONS, BY_ID, bindings, check_keymap
from workbench_screens.desk import Clock, DeleteSession, Desk, Editor, OpenSession, SessionsProvider
from workbench_screens.devices import DevicesScreen
from workbench_screens.diff import DiffScreen
from workbench_screens.editing import EditingApp
from workbench_screens.guide import HelpScreen
from workbench_screens.lineage import LineageScreen
from workbench_screens.population import DetailDialog, PopulationScreen
from workbench_screens.rewards import RewardsScreen
from workbench_screens.sessions import SessionsScreen
from workbench_screens.theming import DEFAULTS, THEMES, WORKBENCH, Theming
from workbench_screens.transcript import TranscriptScreen
from workbench_screens.workscreen import WorkScreen
from workbench_sessions.commands import CommandPort
from workbench_sessions.errors import SessionError
from workbench_sessions.feed import Feed

TICK_S = 0.1
MODES_IN_ORDER = ("population", "rewards", "devices", "diff", "lineage", "sessions", "help", "transcript")


class WorkbenchApp(EditingApp):
    """Everything shown comes from `feed`; everything wished goes to `port`. Nothing here knows the engine.

    `ascii` leaves out braille and other glyphs, `theme` names a Textual theme (bad names raise `ValueError`), `keymap`
    maps action ids to keys, `tick_s` 0 leaves ticking to the caller.
    """

    PAUSE_GC_ON_SCROLL = True
    ENABLE_COMMAND_PALETTE = True
    TITLE = "workbench"
    BINDINGS = bindings()

    def __init__(
        self,
        feed: Feed,
        port: CommandPort,
        *,
        sessions_provider: SessionsProvider | None = None,
        editor: Editor | None = None,
        clock: Clock = time.monotonic,
        ascii: bool = False,
        theme: str | None = None,
        open_session: OpenSession | None = None,
        delete_session: DeleteSession | None = None,
        keymap: dict[str, str] | None = None,
        start: str = "population",
        tick_s: float = TICK_S,
    ) -> None:
        self.desk = Desk(feed, port, clock, ascii)
        super().__init__()
        self.clock = clock
        self.editor = editor
        self.sessions_provider = sessions_provider
        self.open_session = open_session
        self.delete_session = delete_session
        self.tick_s = tick_s
        self.start_mode = start
        self._asked_theme = theme
        self._asked_keymap = keymap or {}
        for one in THEMES:
            self.register_theme(one)
        if theme is not None and theme not in self.available_themes:
            raise ValueError(f"theme: no theme {theme!r}; there are {', '.join(sorted(self.available_themes))}")
        desk = self.desk
        factories: dict[str, Callable[[], Screen[None]]] = {
            "population": lambda: PopulationScreen(desk),
            "rewards": lambda: RewardsScreen(desk),
            "devices": lambda: DevicesScreen(desk),
            "diff": lambda: DiffScreen(desk),
            "lineage": lambda: LineageScreen(desk),
            "sessions": lambda: SessionsScreen(desk, sessions_provider, delete_session),
            "help": lambda: HelpScreen(desk),
            "transcript": lambda: TranscriptScreen(desk),
        }
        for name, factory in factories.items():
            self.add_mode(name, factory)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """So that a theme which does not know our words still has colours for them."""
        return dict(DEFAULTS)

    async def on_mount(self) -> None:
        self.theme = self._asked_theme or WORKBENCH.name
        self._retheme()
        self.theme_changed_signal.subscribe(self, lambda _: self._retheme())
        if self._asked_keymap:
            self.set_keymap(self._asked_keymap)
            for problem in check_keymap(self._asked_keymap):
                self.tell(problem, wrong=True)
        await self.switch_mode(self.start_mode)
        settle()
        if self.tick_s > 0:
            self.set_interval(self.tick_s, self.tick)

    def set_keymap(self, keymap: Keymap) -> None:
        super().set_keymap(keymap)
        self.desk.keys = {name: key for name, key in keymap.items() if name in BY_ID}

    def _retheme(self) -> None:
        self.desk.theming = Theming(self.theme_variables)
        self.desk.themed += 1
        self.paint()

    # The tick

    def tick(self) -> None:
        """Moves the feed on and lets what is visible look at it."""
        try:
            self.desk.feed.poll(self.clock())
        except (SessionError, OSError) as error:
            self.tell(str(error), title="Session", wrong=True)
        self.paint()

    def paint(self) -> None:
        if not self.screen_stack:
            return
        for screen in self.screen_stack:
            if isinstance(screen, (WorkScreen, DetailDialog)) and screen.is_mounted:
                screen.tick()

    # Modes and the palette

    async def action_show(self, name: str) -> None:
        if self.current_mode != name:
            await self.switch_mode(name)

    async def open_path(self, path: Path) -> None:
        """Another session at this desk; one that cannot be opened is a notice and the old one stays."""
        if self.open_session is None:
            self.tell(f"open it with `workbench replay {path}`")
            return
        try:
            feed, port = self.open_session(path)
        except (SessionError, OSError) as error:
            self.tell(str(error), title="Not opened", wrong=True)
            return
        self.desk.switch(feed, port)
        settle()
        await self.action_show("population")
        self.paint()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        name = screen.NAME if isinstance(screen, WorkScreen) else ""
        for act in ACTIONS:
            if act.where not in ("app", name) or act.id == "quit" or act.refusal(self.desk) is not None:
                continue
            action = act.action if "." in act.action else f"app.{act.action}"

            async def run(action: str = action) -> None:
                await self.screen.run_action(action)

            yield SystemCommand(act.label, act.tip, run)


def settle() -> None:
    """Takes what a session brought along out of the collector's sight.

    Thousands of rows that stay for good would otherwise be searched again and again: pauses of 100 ms with 10,000.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def make_app(feed: Feed, port: CommandPort, **options: object) -> WorkbenchApp:
    """The one way to an app, for the command line and for tests. Options as of `WorkbenchApp`."""
    return WorkbenchApp(feed, port, **options)  # type: ignore[arg-type]
