"""What every fact is, and the words that several subjects share."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Verdict = Literal["FASTER", "SLOWER", "SAME", "AMBIGUOUS", "WRONG", "FAILED", "CHEATING"]
Stage = Literal["proposed", "build", "verify", "time", "judge", "done"]
Mode = Literal["auto", "review"]
Severity = Literal["info", "label", "warning", "cheat"]

Value = str | int | float | bool


class Event(Struct, frozen=True, tag=True):
    """Base of all facts."""
