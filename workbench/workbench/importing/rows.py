"""What became of each file of an import: the row that is kept, shown and counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from workbench_engine.tasks.cost import Estimate

State = Literal["clean", "degenerate", "cannot open"]
STATES: tuple[State, ...] = ("clean", "degenerate", "cannot open")

CAUSES: tuple[tuple[str, State, str], ...] = (
    ("no spread", "degenerate", r"has no spread"),
    ("constant", "degenerate", r"does not depend on the inputs"),
    ("idle input", "degenerate", r"does not matter: the output stays the same"),
    ("not finite", "degenerate", r"is not finite on its own get_inputs"),
    ("empty output", "degenerate", r"^(the output|output \d+) is empty"),
    ("random", "degenerate", r"differs between two runs|draws random numbers"),
    ("too slow", "cannot open", r"^no answer within"),
    (
        "too large",
        "cannot open",
        r"^too large|MemoryError|can.t allocate|not enough memory|Cannot allocate memory|SIGKILL|out of memory"
        r"|bad_alloc",
    ),
    ("needs a package", "cannot open", r"ModuleNotFoundError: No module named|ImportError"),
    (
        "needs CUDA",
        "cannot open",
        r"not compiled with CUDA|No CUDA GPUs|no NVIDIA driver|found no NVIDIA|cuda is not available",
    ),
    (
        "needs network",
        "cannot open",
        r"ConnectionError|URLError|name resolution|Network is unreachable|huggingface\.co",
    ),
    ("not Python", "cannot open", r"not valid Python"),
    ("contract", "cannot open", r"lacks |is not a subclass|returned \w+, not|must (be|map|return)"),
)
"""(cause, state, what the reason says), the first that fits; what fits none is "raised"."""

MISSING = re.compile(r"No module named '([\w.]+)'")


class Row(Struct, frozen=True):
    """One file. `sha256` is that of the file as found, `sizes` say what was cut in the kept copy ("N 4096 → 512").

    `estimate` is that of the copy, `original` that of the file as found (the same where nothing was cut); None where
    the file could not even be executed. `shrink`, `memory_bytes` and `deadline_s` are what it was examined with.
    """

    level: int
    number: int
    name: str
    path: str
    sha256: str
    state: State
    cause: str = ""
    reason: str = ""
    sizes: tuple[str, ...] = ()
    estimate: Estimate | None = None
    original: Estimate | None = None
    dtype: str = ""
    seconds: float = 0.0
    shrink: bool = False
    memory_bytes: int = 0
    deadline_s: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.level}/{self.number}"


def classified(reason: str) -> tuple[State, str]:
    """(state, cause) of a file that was refused with `reason`."""
    for cause, state, pattern in CAUSES:
        if re.search(pattern, reason):
            named = MISSING.search(reason) if cause == "needs a package" else None
            return state, f"needs {named[1].partition('.')[0]}" if named else cause
    return "cannot open", "raised"


class Counts(Struct, frozen=True):
    """Of one level (0: of all). `causes` counts the files that are not clean, `cut` those kept in a smaller copy."""

    level: int
    files: int
    clean: int
    degenerate: int
    cannot_open: int
    cut: int
    causes: dict[str, int]


def counted(rows: Sequence[Row]) -> list[Counts]:
    """A line a level, and one over all when there are several levels."""
    levels = sorted({row.level for row in rows})
    groups = [(level, [row for row in rows if row.level == level]) for level in levels]
    if len(levels) > 1:
        groups.append((0, list(rows)))
    return [_count(level, group) for level, group in groups]


def _count(level: int, rows: list[Row]) -> Counts:
    states = Counter(row.state for row in rows)
    causes = Counter(f"{row.state}: {row.cause}" for row in rows if row.state != "clean")
    return Counts(
        level=level,
        files=len(rows),
        clean=states["clean"],
        degenerate=states["degenerate"],
        cannot_open=states["cannot open"],
        cut=sum(bool(row.sizes) for row in rows),
        causes=dict(causes.most_common()),
    )
