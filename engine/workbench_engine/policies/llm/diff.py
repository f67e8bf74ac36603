"""Changes to a file as SEARCH/REPLACE blocks, applied with forgiveness for white space and none for doubt. Pure.

<<<<<<< SEARCH
lines of the file
=======
lines instead
>>>>>>> REPLACE
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from workbench_engine.policies.llm.frozen import FrozenError, check_untouched, has_frozen

CONTEXT_LINES = 3
_SEARCH = re.compile(r"^\s*<{5,9}\s*(?:SEARCH|ORIGINAL)\s*$", re.IGNORECASE)
_MIDDLE = re.compile(r"^\s*={5,9}\s*$")
_REPLACE = re.compile(r"^\s*>{5,9}\s*(?:REPLACE|UPDATED)?\s*$", re.IGNORECASE)


class PatchError(ValueError):
    """A change that cannot be applied. `str()` says which, why and what is near, fit for the next prompt."""


class Change(Struct, frozen=True):
    """Lines to find and lines to put there, without line ends."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


def parse(text: str) -> list[Change]:
    """The blocks in an answer; fences and prose around them are passed over. Raises PatchError."""
    changes: list[Change] = []
    search: list[str] | None = None
    replacement: list[str] | None = None
    begun = 0
    for number, line in enumerate(text.splitlines(), 1):
        if _SEARCH.match(line):
            if search is not None:
                raise PatchError(f"change {len(changes) + 1} (line {begun}) is not closed before the next begins")
            search, replacement, begun = [], None, number
        elif search is None:
            continue
        elif replacement is None and _MIDDLE.match(line):
            replacement = []
        elif replacement is not None and _REPLACE.match(line):
            changes.append(Change(tuple(search), tuple(replacement)))
            search, replacement = None, None
        elif replacement is None:
            search.append(line.rstrip())
        else:
            replacement.append(line.rstrip())
    if search is not None:
        missing = "`=======`" if replacement is None else "`>>>>>>> REPLACE`"
        raise PatchError(f"change {len(changes) + 1} has no {missing}: the answer ends inside it")
    if not changes:
        raise PatchError("there is no SEARCH/REPLACE block in the answer")
    return changes


def apply(parent: str, changes: Sequence[Change]) -> str:
    """The parent with every change made, in order. Raises PatchError; nothing is applied in part."""
    lines = parent.splitlines()
    for number, change in enumerate(changes, 1):
        lines = _applied(lines, change, number)
    child = "\n".join(lines) + "\n"
    if child.split() == parent.split():
        raise PatchError("the changes leave the file as it was")
    if has_frozen(parent):
        try:
            check_untouched(parent, child)
        except FrozenError as error:
            raise PatchError(str(error)) from None
    return child


def _applied(lines: list[str], change: Change, number: int) -> list[str]:
    search = _trimmed(change.search)
    if not search:
        raise PatchError(f"change {number} searches for nothing; copy the lines to replace from the file")
    same: Callable[[str], str]
    for same in (_exact, _spaced, _squeezed):
        places = _places(lines, search, same)
        if len(places) == 1:
            at = places[0]
            found = lines[at : at + len(search)]
            replacement = list(_trimmed(change.replace))
            if same is not _exact:
                replacement = _reindented(replacement, search, found)
            return [*lines[:at], *replacement, *lines[at + len(search) :]]
        if len(places) > 1:
            where = ", ".join(str(p + 1) for p in places[:6])
            raise PatchError(f"change {number} fits {len(places)} places (lines {where}); add lines around it")
    raise PatchError(_not_found(lines, search, number))


def _exact(line: str) -> str:
    return line.rstrip()


def _spaced(line: str) -> str:
    """Indentation does not count."""
    return " ".join(line.split())


def _squeezed(line: str) -> str:
    """No white space counts."""
    return "".join(line.split())


def _places(lines: Sequence[str], search: Sequence[str], normal: Callable[[str], str]) -> list[int]:
    haystack, needle = [normal(line) for line in lines], [normal(line) for line in search]
    return [i for i in range(len(haystack) - len(needle) + 1) if haystack[i : i + len(needle)] == needle]


def _trimmed(lines: Sequence[str]) -> Sequence[str]:
    """Without blank lines at both ends."""
    full = [i for i, line in enumerate(lines) if line.strip()]
    return lines[full[0] : full[-1] + 1] if full else ()


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _reindented(replacement: list[str], search: Sequence[str], found: Sequence[str]) -> list[str]:
    """The replacement moved by as much as the search was off."""
    given = next((_indent(line) for line in search if line.strip()), "")
    real = next((_indent(line) for line in found if line.strip()), "")
    if given == real:
        return replacement

    def moved(line: str) -> str:
        if not line.strip():
            return ""
        own = _indent(line)
        extra = own[len(given) :] if own.startswith(given) else ""
        return real + extra + line.lstrip()

    return [moved(line) for line in replacement]


def _not_found(lines: Sequence[str], search: Sequence[str], number: int) -> str:
    """What is nearest to the search, with its line numbers and the lines that differ."""
    first = search[0].strip()[:80]
    said = f"change {number}: its SEARCH text (beginning `{first}`) is not in the file"
    if not lines:
        return f"{said}; the file is empty"
    size = len(search)
    wanted = "\n".join(_spaced(line) for line in search)
    best, at = 0.0, 0
    for i in range(max(1, len(lines) - size + 1)):
        window = "\n".join(_spaced(line) for line in lines[i : i + size])
        matcher = difflib.SequenceMatcher(None, window, wanted, autojunk=False)
        if matcher.real_quick_ratio() <= best or matcher.quick_ratio() <= best:
            continue
        ratio = matcher.ratio()
        if ratio > best:
            best, at = ratio, i
    if best < 0.4:
        return f"{said}, nor anything like it; copy the lines exactly as they are in the file"
    start, stop = max(0, at - CONTEXT_LINES), min(len(lines), at + size + CONTEXT_LINES)
    shown = "\n".join(f"{i + 1:4d}| {lines[i]}" for i in range(start, stop))
    odd = next(
        (f"; it has `{a.strip()[:80]}` where you wrote `{b.strip()[:80]}`" for a, b in _unequal(lines[at:], search)), ""
    )
    return f"{said}{odd}. The nearest lines are:\n{shown}"


def _unequal(lines: Sequence[str], search: Sequence[str]) -> list[tuple[str, str]]:
    return [(a, b) for a, b in zip(lines, search, strict=False) if _spaced(a) != _spaced(b)]
