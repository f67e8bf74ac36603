"""May this process take the whole screen? Decided once, from facts that tests can give."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from msgspec import Struct


class Terminal(Struct, frozen=True):
    """What stdin, stdout and stderr are, and what the environment says of them."""

    stdin_tty: bool
    stdout_tty: bool
    stderr_tty: bool
    term: str = ""
    ci: bool = False

    @property
    def refusal(self) -> str:
        """Why there is no full screen here; "" when there can be one."""
        missing = [
            name
            for name, tty in (("stdin", self.stdin_tty), ("stdout", self.stdout_tty), ("stderr", self.stderr_tty))
            if not tty
        ]
        if missing:
            return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not a terminal"
        if self.term in ("", "dumb"):
            return f"TERM is {self.term or 'not set'}"
        return "CI is set" if self.ci else ""


def this_terminal(environment: Mapping[str, str] = os.environ) -> Terminal:
    """Of this process."""

    def tty(stream: object) -> bool:
        try:
            return bool(stream.isatty())  # type: ignore[attr-defined]
        except (AttributeError, ValueError):
            return False

    return Terminal(
        stdin_tty=tty(sys.stdin),
        stdout_tty=tty(sys.stdout),
        stderr_tty=tty(sys.stderr),
        term=environment.get("TERM", ""),
        ci=bool(environment.get("CI")),
    )
