"""Text with styles by word, before it meets a terminal: what every pane draws and tests can read.

A `Line` is a list of (text, style word) spans; `Theming` turns words into colours. Widths are terminal cells.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size

Span = tuple[str, str]
Line = list[Span]


_UNSAFE = {code: "�" for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def safe(text: str) -> str:
    """The text without control characters and without marks that turn the direction of writing. One line's."""
    return text if text.isascii() and text.isprintable() else text.translate(_UNSAFE)


def plain(line: Line) -> str:
    """The text alone."""
    return "".join(text for text, _ in line)


def width_of(line: Line) -> int:
    """Cells the line takes."""
    return sum(cell_len(text) for text, _ in line)


def cut(text: str, width: int, more: str = "…") -> str:
    """`text` in at most `width` cells, its end replaced by `more` when something was left off."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    room = width - cell_len(more)
    return more[:width] if room <= 0 else set_cell_size(text, room).rstrip() + more


def fit(text: str, width: int, right: bool = False) -> str:
    """`text` in exactly `width` cells."""
    short = cut(text, width)
    pad = " " * (width - cell_len(short))
    return pad + short if right else short + pad


def fit_line(line: Line, width: int, style: str = "") -> Line:
    """The line cropped or padded to exactly `width` cells."""
    out: Line = []
    left = width
    for text, word in line:
        if left <= 0:
            break
        size = cell_len(text)
        if size > left:
            text, size = set_cell_size(text, left), left
        out.append((text, word))
        left -= size
    if left > 0:
        out.append((" " * left, style))
    return out


def spread(left: Line, right: Line, width: int) -> Line:
    """`left` at the left edge, `right` at the right one; the right one gives way first."""
    gap = width - width_of(left) - width_of(right)
    if gap >= 1:
        return [*left, (" " * gap, ""), *right]
    return fit_line(left, width)


def wrap(text: str, width: int) -> list[str]:
    """Words wrapped to `width` cells; line breaks stay, long words are cut hard."""
    out: list[str] = []
    for row in text.splitlines() or [""]:
        current = ""
        for word in row.split(" "):
            joined = f"{current} {word}" if current else word
            if cell_len(joined) <= width:
                current = joined
                continue
            if current:
                out.append(current)
            while cell_len(word) > width > 0:
                head = set_cell_size(word, width)
                out.append(head.rstrip())
                word = word[len(head) :]
            current = word
        out.append(current)
    return out


def joined(parts: Iterable[Line], gap: str = "  ") -> Line:
    """Lines one after the other with `gap` between."""
    out: Line = []
    for part in parts:
        if not part:
            continue
        if out:
            out.append((gap, ""))
        out.extend(part)
    return out
