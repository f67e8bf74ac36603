"""One fault: an edit of an honest candidate's text."""

from __future__ import annotations

import difflib
from typing import Literal

from msgspec import Struct

Fault = Literal[
    "off by one",
    "dropped row or column",
    "skipped tail",
    "early end",
    "wrong index",
    "swapped indices",
    "wrong constant",
    "wrong start value",
    "wrong comparison",
    "wrong operator",
    "swapped operands",
    "dropped term",
    "deleted statement",
    "wrong type",
    "precision",
    "fast approximation",
]


class Edit(Struct, frozen=True):
    """Replace bytes [start, end) of a file (UTF-8) by `new`; `note` says it in words."""

    fault: Fault
    start: int
    end: int
    new: str
    note: str

    def apply(self, text: str) -> str:
        raw = text.encode()
        return (raw[: self.start] + self.new.encode() + raw[self.end :]).decode()


class Mutant(Struct, frozen=True):
    """A candidate with one fault. `origin` names the honest candidate it was made from, `line` counts from 1."""

    task: str
    origin: str
    kind: Literal["kernel", "module"]
    fault: Fault
    note: str
    line: int
    text: str

    @property
    def key(self) -> str:
        return f"{self.task}/{self.origin}/{self.line}/{self.note}"


def mutant_of(task: str, origin: str, kind: Literal["kernel", "module"], text: str, edit: Edit) -> Mutant:
    """The candidate `text` with `edit` made."""
    line = text.encode()[: edit.start].count(b"\n") + 1
    return Mutant(task, origin, kind, edit.fault, edit.note, line, edit.apply(text))


def difference(before: str, after: str) -> str:
    """The changed lines, as a diff without context."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "honest", "mutant", lineterm="", n=0)
    return "\n".join(list(lines)[2:])
