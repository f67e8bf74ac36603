"""The door of static advice: one file in, what to look at out."""

from __future__ import annotations

from collections.abc import Iterable

from workbench_engine.referee.advice.codes import Advice, advice
from workbench_engine.referee.advice.cxx_rules import read_cxx
from workbench_engine.referee.advice.python_source import Read, read_python
from workbench_sessions.events import FindingRaised

LONGEST = 400_000
"""Characters read at most: whoever writes more is not read, and that is said."""


def advise(text: str, kind: str) -> list[Advice]:
    """Everything seen in a candidate's file, by line. `kind` is "kernel" (C++), else Python. Never raises."""
    return list(_read(text, kind).advice)


def carries_compiled_code(text: str, kind: str) -> str:
    """By what the file brings compiled code of its own ("torch.utils.cpp_extension.load_inline"); "" if it does not.

    A kernel is nothing else: "kernel".
    """
    return "kernel" if kind == "kernel" else _read(text, kind).compiled


def as_findings(candidate: str, seen: Iterable[Advice]) -> list[FindingRaised]:
    """One badge a code: where it was seen first, and how often."""
    grouped: dict[str, list[Advice]] = {}
    for one in seen:
        grouped.setdefault(one.code, []).append(one)
    badges = []
    for several in grouped.values():
        first = several[0]
        more = f", and {len(several) - 1} more" if len(several) > 1 else ""
        evidence: dict[str, str | int | float | bool] = {"kind": first.code, "line": first.line}
        if first.rows:
            evidence["rows"] = ", ".join(map(str, first.rows))
        text = f"{first.text} (line {first.line}{more})"
        badges.append(FindingRaised(candidate, "advice", "label", text, evidence))
    return badges


def _read(text: str, kind: str) -> Read:
    if len(text) > LONGEST:
        return Read((advice("unparsable", 1, f"{len(text)} characters are more than the {LONGEST} that are read"),))
    try:
        read = Read(tuple(read_cxx(text)[0]), "kernel") if kind == "kernel" else read_python(text)
    except Exception as error:
        # Advice is never worth a lost evaluation, and a reader that failed is itself worth a look.
        read = Read((advice("unparsable", 1, f"{type(error).__name__}: {error}"[:200]),))
    unique = {(one.code, one.line, one.text): one for one in read.advice}
    return Read(tuple(sorted(unique.values(), key=lambda one: (one.line, one.code, one.text))), read.compiled)
