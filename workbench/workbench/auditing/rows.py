"""One released kernel: the task, the code, what was claimed of it; and what became of it. Data only."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import Struct

from workbench_sessions.events import Severity

VALID = ("FASTER", "SAME", "SLOWER", "AMBIGUOUS", "UNCHANGED")
"""States of a kernel that is correct: its refereed speedup counts. UNCHANGED is the reference's own code: 1.0."""
UNUSABLE = ("WRONG", "CHEATING", "FAILED")
"""Judged, and no usable kernel: counted as 1.0."""
NO_CODE = ("NO CODE", "NOT PYTHON", "NO MODELNEW", "BAD ROW")
"""Nothing there to judge: counted as 1.0."""
NOT_JUDGED = ("TASK REFUSED", "NOT REFEREED")
"""The task is useless as a test, or this machine could not judge the row: counted as 1.0."""
STATES = (*VALID, *UNUSABLE, *NO_CODE, *NOT_JUDGED)

NO_LEVEL = "?"
"""Level of a row that cannot be read."""


class Row(Struct, frozen=True):
    """One row of the input. `candidate` None: no code. `problem`: why the row itself cannot be used.

    `claims` are speedups as the file says them, None where it says nothing; `where` is the place in the input.
    """

    number: int
    level: str
    task: str
    reference: str
    candidate: str | None
    claims: dict[str, float | None] = {}
    kind: str = "module"
    sample: str = ""
    name: str = ""
    where: str = ""
    problem: str = ""
    extra: dict[str, Any] = {}

    @property
    def key(self) -> str:
        """ "1/3", "1/3#2" for a second candidate of the same task."""
        return f"{self.level}/{self.task}" + (f"#{self.sample}" if self.sample else "")


class Finding(Struct, frozen=True):
    """As `FindingRaised`, kept with the row."""

    code: str
    severity: Severity
    text: str


class Outcome(Struct, frozen=True):
    """What became of a row: one line of results.jsonl.

    Speedups are ratios t_reference / t_candidate, times seconds. `d` are ln ratios, one for each couple of timed pairs
    in opposite order; exp(median d) is `speedup`. `changed` says which constants were overridden.
    """

    key: str
    number: int
    level: str
    task: str
    state: str
    claims: dict[str, float | None] = {}
    kind: str = "module"
    sample: str = ""
    name: str = ""
    reason: str = ""
    findings: list[Finding] = []
    speedup: float | None = None
    lower: float | None = None
    upper: float | None = None
    reference_s: float | None = None
    candidate_s: float | None = None
    delta: float | None = None
    pairs: int = 0
    d: list[float] = []
    changed: list[str] = []
    sandbox: str = ""
    seconds: float = 0.0
    candidate_sha256: str = ""
    extra: dict[str, Any] = {}

    @property
    def counted(self) -> float:
        """The speedup that enters the means over all rows: 1.0 where there is no usable kernel."""
        return self.speedup if self.state in VALID and self.speedup is not None else 1.0


def one_line(text: str) -> str:
    """Printable characters only: a file's text must not move the cursor of the terminal it is shown on."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which 2 comes before 10."""
    parts = re.split(r"(\d+)", text)
    return tuple((0, int(p), "") if p.isdigit() and len(p) < 18 else (1, 0, p) for p in parts if p)


def claim(value: Any) -> float | None:
    """A claimed speedup: a positive finite number, or a string of one; anything else is no claim."""
    if isinstance(value, str):
        try:
            value = float(value.strip().rstrip("x×"))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def is_claim(field: str) -> bool:
    """Whether a field of the input holds a claimed speedup."""
    return field == "score" or field.startswith("score_")
