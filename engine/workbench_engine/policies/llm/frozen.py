"""Regions of a file that no patch may change, between marker comments. Pure.

    // frozen: begin            # frozen: begin
    ...                         ...
    // frozen: end              # frozen: end

A file with `EVOLVE-BLOCK-START` and `EVOLVE-BLOCK-END` comments, as other programs write them, is frozen everywhere
outside of these blocks. The marker lines themselves are frozen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

_BEGIN = re.compile(r"^\s*(?://|#)\s*frozen:\s*begin\b", re.IGNORECASE)
_END = re.compile(r"^\s*(?://|#)\s*frozen:\s*end\b", re.IGNORECASE)
_OPEN = re.compile(r"^\s*(?://|#)\s*EVOLVE-BLOCK-START\b")
_CLOSE = re.compile(r"^\s*(?://|#)\s*EVOLVE-BLOCK-END\b")


class FrozenError(ValueError):
    """Frozen text was changed, or markers do not match. `str()` is fit for the next prompt."""


class Region(Struct, frozen=True):
    """Lines `start` to `stop` (exclusive, from 0), frozen or not."""

    frozen: bool
    start: int
    stop: int


def regions(text: str) -> list[Region]:
    """The file as alternating regions; one region that is not frozen when there are no markers.

    Raises FrozenError when markers do not pair.
    """
    lines = text.splitlines(keepends=True)
    evolve = any(_OPEN.match(line) for line in lines)
    # A marker line belongs to the frozen side, whichever it opens.
    frozen: list[bool] = []
    inside = evolve
    begun = 0
    for number, line in enumerate(lines, 1):
        if evolve and _OPEN.match(line):
            if not inside:
                raise FrozenError(f"line {number}: EVOLVE-BLOCK-START inside a block that line {begun} starts")
            frozen.append(True)
            inside, begun = False, number
        elif evolve and _CLOSE.match(line):
            if inside:
                raise FrozenError(f"line {number}: EVOLVE-BLOCK-END without a start")
            frozen.append(True)
            inside = True
        elif not evolve and _BEGIN.match(line):
            if inside:
                raise FrozenError(f"line {number}: `frozen: begin` inside the region that line {begun} begins")
            frozen.append(True)
            inside, begun = True, number
        elif not evolve and _END.match(line):
            if not inside:
                raise FrozenError(f"line {number}: `frozen: end` without a begin")
            frozen.append(True)
            inside = False
        else:
            frozen.append(inside)
    if inside != evolve:
        raise FrozenError(f"the marker of line {begun} has no end")
    found: list[Region] = []
    for i, is_frozen in enumerate(frozen):
        if found and found[-1].frozen == is_frozen:
            found[-1] = Region(is_frozen, found[-1].start, i + 1)
        else:
            found.append(Region(is_frozen, i, i + 1))
    return found or [Region(False, 0, 0)]


def has_frozen(text: str) -> bool:
    """Whether anything is frozen; a file with markers that do not pair has nothing frozen."""
    try:
        return any(r.frozen for r in regions(text))
    except FrozenError:
        return False


def frozen_texts(text: str) -> list[str]:
    """The frozen regions, in order."""
    lines = text.splitlines(keepends=True)
    return ["".join(lines[r.start : r.stop]) for r in regions(text) if r.frozen]


def kept(parent: str, child: str) -> str:
    """`child` with the frozen text of `parent`, however the child spells it.

    A child with the parent's markers gets the parent's text between them. One that repeats the frozen text without
    markers is left as it is. Raises FrozenError when neither is so.
    """
    wanted = frozen_texts(parent)
    if not wanted:
        return child
    lines = child.splitlines(keepends=True)
    try:
        parts = regions(child)
    except FrozenError as error:
        raise FrozenError(f"the markers of the frozen regions are damaged: {error}") from None
    mine = [r for r in parts if r.frozen]
    if len(mine) == len(wanted):
        texts = iter(wanted)
        return "".join(_ended(next(texts)) if r.frozen else "".join(lines[r.start : r.stop]) for r in parts)
    raise FrozenError(
        f"the file has {len(wanted)} frozen regions, the answer keeps {len(mine)} of them; "
        "copy every frozen region with its marker comments, unchanged"
    )


def check_untouched(parent: str, child: str) -> None:
    """Raises FrozenError, with the first line that differs, unless every frozen region is as it was."""
    before, after = frozen_texts(parent), frozen_texts(child)
    if len(before) != len(after):
        raise FrozenError(f"the file has {len(before)} frozen regions, the changed one {len(after)}")
    for old, new in zip(before, after, strict=True):
        if old.rstrip("\n") != new.rstrip("\n"):
            raise FrozenError(f"a frozen region was changed at `{_first_difference(old, new)}`; leave it as it is")


def _first_difference(old: str, new: str) -> str:
    a, b = old.splitlines(), new.splitlines()
    for one, other in zip(a, b, strict=False):
        if one != other:
            return one.strip()[:80]
    longer: Sequence[str] = a[len(b) :] or b[len(a) :]
    return longer[0].strip()[:80] if longer else ""


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
