"""The terminal: whether the full screen fits and can show what it wants to."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping

from workbench.examining.finding import Examined, ok, warn
from workbench.terminal import Terminal

LEAST_SIZE = (80, 24)


def terminal(here: Terminal, size: tuple[int, int], environment: Mapping[str, str]) -> list[Examined]:
    """`size` is (columns, lines)."""
    found = []
    if here.refusal:
        found.append(ok("terminal", f"no full screen ({here.refusal}); runs print lines instead"))
    else:
        said = f"{size[0]}×{size[1]}, {here.term}"
        small = warn("terminal", said, f"at least {LEAST_SIZE[0]}×{LEAST_SIZE[1]} shows the whole table")
        found.append(small if size[0] < LEAST_SIZE[0] or size[1] < LEAST_SIZE[1] else ok("terminal", said))
    found.append(colours(here, environment))
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "")
    narrow = warn("unicode", encoding or "unknown", "set a UTF-8 locale (LANG=C.UTF-8), or ui.ascii = true")
    found.append(ok("unicode", "utf-8") if encoding == "utf8" else narrow)
    return found


def colours(here: Terminal, environment: Mapping[str, str]) -> Examined:
    """Verdicts are words and glyphs as well, so that no colour is no loss."""
    if environment.get("NO_COLOR"):
        return ok("colours", "switched off by NO_COLOR")
    if environment.get("COLORTERM", "") in ("truecolor", "24bit"):
        return ok("colours", "16 million")
    if "256" in here.term:
        return ok("colours", "256")
    return ok("colours", "few are promised by TERM; set COLORTERM=truecolor if the terminal has more")


def size_of_terminal() -> tuple[int, int]:
    found = shutil.get_terminal_size()
    return found.columns, found.lines
