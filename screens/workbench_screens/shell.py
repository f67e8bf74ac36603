"""The app's lowest floor: a desk, notices, and sending commands without ever crashing the screen."""

from __future__ import annotations

from textual.app import App

from workbench_screens.actions import BY_ID
from workbench_screens.desk import Desk
from workbench_sessions.commands import Command
from workbench_sessions.errors import SessionError


class DeskApp(App[None]):
    """What the action groups above build on."""

    desk: Desk

    def tell(self, text: str, title: str = "", wrong: bool = False) -> None:
        """A notice; the text is never read as markup."""
        self.notify(
            text, title=title, severity="error" if wrong else "information", timeout=6 if wrong else 3, markup=False
        )

    def refused(self, action: str) -> bool:
        """Says why an action cannot be done now; False when it can."""
        act = BY_ID[action]
        reason = act.refusal(self.desk)
        if reason is not None:
            self.notify(reason, title=f"{act.label}: not now", severity="warning", markup=False)
        return reason is not None

    def send(self, command: Command) -> bool:
        """To the engine; a file that cannot be written is a notice, not the end."""
        try:
            self.desk.port.send(command)
        except (SessionError, OSError) as error:
            self.tell(str(error), title="Not sent", wrong=True)
            return False
        return True
