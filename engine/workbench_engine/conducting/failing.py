"""When a run cannot go on."""

from __future__ import annotations


class RunFailed(Exception):
    """The run cannot go on. `str()` is one line; `remedy` says what to do."""

    def __init__(self, what: str, remedy: str = "") -> None:
        self.remedy = remedy
        super().__init__(what)
