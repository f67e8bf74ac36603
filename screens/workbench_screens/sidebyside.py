"""Two texts against each other: aligned rows, what changed inside a line, and where the hunks are."""

from __future__ import annotations

import difflib
import re

from msgspec import Struct

Spans = tuple[tuple[int, int], ...]
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


class Row(Struct, frozen=True):
    """One row of a side-by-side diff. Numbers count lines from 1; None = nothing on this side.

    `kind`: "same", "changed", "removed", "added". `left_marks` and `right_marks` are character spans that differ.
    """

    kind: str
    left: int | None
    right: int | None
    left_marks: Spans = ()
    right_marks: Spans = ()


class Comparison(Struct, frozen=True):
    """All rows of the diff and the row at which each hunk begins."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    rows: tuple[Row, ...]
    hunks: tuple[int, ...]


def compare(left: str, right: str) -> Comparison:
    """Line diff of two texts; replaced blocks are paired line by line."""
    a, b = left.expandtabs(4).splitlines(), right.expandtabs(4).splitlines()
    rows: list[Row] = []
    hunks: list[int] = []
    for equal, a0, a1, b0, b1 in _blocks(a, b):
        if equal:
            rows.extend(Row("same", a0 + i + 1, b0 + i + 1) for i in range(a1 - a0))
            continue
        hunks.append(len(rows))
        paired = min(a1 - a0, b1 - b0)
        for i in range(paired):
            left_marks, right_marks = inside(a[a0 + i], b[b0 + i])
            rows.append(Row("changed", a0 + i + 1, b0 + i + 1, left_marks, right_marks))
        rows.extend(Row("removed", i + 1, None) for i in range(a0 + paired, a1))
        rows.extend(Row("added", None, i + 1) for i in range(b0 + paired, b1))
    return Comparison(left=tuple(a), right=tuple(b), rows=tuple(rows), hunks=tuple(hunks))


def _blocks(a: list[str], b: list[str]) -> list[tuple[bool, int, int, int, int]]:
    """(equal, a from, a to, b from, b to). Lines that match only by being empty or a brace do not part two changes."""
    out: list[tuple[bool, int, int, int, int]] = []
    codes = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    for i, (tag, a0, a1, b0, b1) in enumerate(codes):
        between = 0 < i < len(codes) - 1
        hollow = between and a1 - a0 <= 2 and all(line.strip() in ("", "{", "}") for line in a[a0:a1])
        equal = tag == "equal" and not hollow
        if out and not equal and not out[-1][0]:
            _, from_a, _, from_b, _ = out[-1]
            out[-1] = (False, from_a, a1, from_b, b1)
        else:
            out.append((equal, a0, a1, b0, b1))
    return out


def inside(left: str, right: str) -> tuple[Spans, Spans]:
    """Character spans that differ between two lines, token by token; none when the lines share too little."""
    a, b = _TOKEN.findall(left), _TOKEN.findall(right)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < 0.4:
        return (), ()
    a_at, b_at = _starts(a), _starts(b)
    left_marks, right_marks = [], []
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            continue
        if a1 > a0:
            left_marks.append((a_at[a0], a_at[a1]))
        if b1 > b0:
            right_marks.append((b_at[b0], b_at[b1]))
    return tuple(left_marks), tuple(right_marks)


def _starts(tokens: list[str]) -> list[int]:
    out = [0]
    for token in tokens:
        out.append(out[-1] + len(token))
    return out


def unified(rows: tuple[Row, ...]) -> list[Row]:
    """The same rows for one column: a changed row becomes a removed and an added one, hunks stay together."""
    out: list[Row] = []
    removed: list[Row] = []
    added: list[Row] = []
    for row in rows:
        if row.kind == "same":
            out += removed + added
            removed, added = [], []
            out.append(row)
            continue
        if row.left is not None:
            removed.append(Row("removed", row.left, None, row.left_marks))
        if row.right is not None:
            added.append(Row("added", None, row.right, (), row.right_marks))
    return out + removed + added


def hunk_starts(rows: list[Row]) -> list[int]:
    """Row indices at which a run of differing rows begins."""
    return [i for i, row in enumerate(rows) if row.kind != "same" and (i == 0 or rows[i - 1].kind == "same")]
