"""What a command says when it cannot do what was asked: one line and an exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from workbench_engine.exits import ExitCode


class CommandFailed(Exception):
    """Ends a command. `str()` is one line: what, where, what to do; `code` is the exit status."""

    def __init__(self, text: str, code: ExitCode = ExitCode.FAILED) -> None:
        self.code = code
        super().__init__(text)


class UsageProblem(CommandFailed):
    """The command line, configuration, task or session cannot be used: exit status 2."""

    def __init__(self, text: str) -> None:
        super().__init__(text, ExitCode.USAGE)


class EnvironmentProblem(CommandFailed):
    """This machine lacks something: exit status 3."""

    def __init__(self, text: str) -> None:
        super().__init__(text, ExitCode.ENVIRONMENT)


def nearest(wanted: str, known: Iterable[str]) -> str:
    """ "did you mean 'x'?", or the list of what is known when nothing is near."""
    names = sorted(known)
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
