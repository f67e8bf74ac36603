"""Long texts as rows of a width: wrapped once, whatever is in them, and growing while a model writes.

What a model says may hold anything, also characters that would move the terminal's cursor: these are replaced.
"""

from __future__ import annotations

from rich.cells import cell_len, get_character_cell_size

from workbench_screens.lines import Line, safe

LONGEST_LINE = 4000
"""Characters after which an unfinished line of a stream is taken for finished."""


def wrapped(line: str, width: int) -> list[str]:
    """One line cut to `width` cells, at spaces where there are any. Joining gives it back but for those spaces."""
    width = max(1, width)
    line = safe(line.expandtabs(4))
    if len(line) <= width and (line.isascii() or cell_len(line) <= width):
        return [line]
    out = []
    start, count = 0, len(line)
    plain = line.isascii()
    while start < count:
        end = min(count, start + width) if plain else _fitting(line, start, width)
        if end < count:
            space = line.rfind(" ", start + 1, end + 1)
            if space > start and line[start:space].strip():
                out.append(line[start:space])
                start = space + 1
                continue
        out.append(line[start:end])
        start = end
    return out or [""]


def _fitting(line: str, start: int, width: int) -> int:
    """The end of the longest piece from `start` that fits; at least one character long."""
    used, end = 0, start
    while end < len(line):
        used += get_character_cell_size(line[end])
        if used > width:
            break
        end += 1
    return max(end, start + 1)


def fence(line: str) -> bool:
    """Whether a line opens or closes a code block."""
    return line.lstrip().startswith(("```", "~~~"))


class Prose:
    """Text that may still grow, as rows: headings and code blocks told apart. Appending costs what is new."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[Line] = []
        self._open = ""
        self._stable = 0
        self._code = False

    def add(self, text: str) -> None:
        """More text at the end."""
        del self.rows[self._stable :]
        *whole, self._open = (self._open + text).split("\n")
        for line in whole:
            self._put(line.rstrip("\r"))
        while len(self._open) > LONGEST_LINE:
            self._put(self._open[:LONGEST_LINE])
            self._open = self._open[LONGEST_LINE:]
        self._stable = len(self.rows)
        if self._open:
            code = self._code
            self._put(self._open)
            self._code = code

    def _put(self, line: str) -> None:
        style = "code-name" if self._code else "bold" if line.startswith(("#", "**", "[")) else ""
        if fence(line):
            style, self._code = "muted", not self._code
        self.rows.extend([(part, style)] for part in wrapped(line, self.width))


def prose(text: str, width: int) -> list[Line]:
    """A whole text as rows."""
    made = Prose(width)
    made.add(text)
    return made.rows


def folded_code(lines: list[Line], width: int) -> list[Line]:
    """Highlighted lines, the long ones cut hard and continued."""
    out: list[Line] = []
    for line in lines:
        row: Line = []
        used = 0
        for text, style in line:
            text = safe(text)
            while text:
                room = width - used
                size = cell_len(text)
                if size <= room:
                    row.append((text, style))
                    used += size
                    break
                end = _fitting(text, 0, room) if room > 0 else 0
                if end and cell_len(text[:end]) <= room:
                    row.append((text[:end], style))
                    text = text[end:]
                out.append(row)
                row, used = [], 0
        out.append(row)
    return out
