"""Which display this process gets."""

from __future__ import annotations

from workbench.config import Config
from workbench.display.contract import Display
from workbench.display.headless import Headless, PlainReporter, RichReporter
from workbench.places import Places
from workbench.terminal import Terminal


def choose(terminal: Terminal, config: Config, places: Places, headless: bool) -> Display:
    """Full screen where it can be had and is wanted, else lines on stderr, rich ones on a terminal."""
    if not headless and not terminal.refusal:
        from workbench.display.screen import FullScreen

        return FullScreen(config, places)
    fancy = terminal.stderr_tty and terminal.term not in ("", "dumb") and not terminal.ci
    return Headless(RichReporter() if fancy else PlainReporter())
