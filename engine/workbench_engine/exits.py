"""Exit codes of the engine process and of everything that reports its outcome."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    """The run ended with a candidate that is faster than the reference, or did what was asked."""
    FAILED = 1
    """The run failed, or ended by itself and no candidate passed."""
    USAGE = 2
    """A command line, setting, task or session that cannot be used."""
    ENVIRONMENT = 3
    """The machine lacks something: sandbox, compiler, disk space."""
    BUDGET = 4
    """Deadline or budget reached before anything faster was found."""
    INTERRUPTED = 130
    """Ended by a signal."""
