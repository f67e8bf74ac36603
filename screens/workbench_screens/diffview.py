"""The diff itself, line API: split or unified, what changed inside a line marked, hunks to jump to."""

from __future__ import annotations

import bisect
import itertools

from textual.binding import Binding
from textual.strip import Strip

from workbench_screens.desk import Desk
from workbench_screens.lines import Line, fit_line
from workbench_screens.pane import LineView, paint
from workbench_screens.sidebyside import Comparison, Row, Spans, hunk_starts, unified

GUTTER = 7


def marked(line: Line, marks: Spans, style: str, base: str) -> Line:
    """The line with `base` under it and `style` under the marked character spans."""
    out: Line = []
    at = 0
    edges = sorted({edge for span in marks for edge in span})
    for text, word in line:
        start = at
        at += len(text)
        cuts = [start, *(edge for edge in edges if start < edge < at), at]
        for a, b in itertools.pairwise(cuts):
            inside = any(low <= a < high for low, high in marks)
            out.append((text[a - start : b - start], f"{word} {style if inside else base}".strip()))
    return out


def shifted(line: Line, by: int) -> Line:
    """The line without its first `by` characters."""
    out: Line = []
    for text, word in line:
        if by >= len(text):
            by -= len(text)
            continue
        out.append((text[by:], word))
        by = 0
    return out


def half(
    number: int | None, source: list[Line], sign: str, base: str, mark: str, marks: Spans, width: int, shift: int
) -> Line:
    """One side of a row: number, sign, text; blank when the row is not on this side."""
    if number is None:
        return [(" " * width, "")]
    text = source[number - 1] if number <= len(source) else []
    body = fit_line(shifted(marked(text, marks, mark, base), shift), max(0, width - GUTTER), base)
    return [(f"{number:>4} {sign} ", f"muted {base}".strip()), *body]


def split_row(row: Row, left: list[Line], right: list[Line], width: int, shift: int, bar: str) -> Line:
    """Left and right of one row with a bar between. Signs say what colours say."""
    one = (width - 1) // 2
    changed = row.kind != "same"
    a = half(
        row.left,
        left,
        "-" if changed else " ",
        "removed-line" if changed else "",
        "removed-word",
        row.left_marks,
        one,
        shift,
    )
    b = half(
        row.right,
        right,
        "+" if changed else " ",
        "added-line" if changed else "",
        "added-word",
        row.right_marks,
        width - 1 - one,
        shift,
    )
    return [*a, (bar, "faint"), *b]


def single_row(row: Row, left: list[Line], right: list[Line], width: int, shift: int) -> Line:
    """One row of the unified view."""
    if row.kind == "removed":
        return half(row.left, left, "-", "removed-line", "removed-word", row.left_marks, width, shift)
    if row.kind == "added":
        return half(row.right, right, "+", "added-line", "added-word", row.right_marks, width, shift)
    return half(row.right, right, " ", "", "", (), width, shift)


class DiffView(LineView, can_focus=True):
    DEFAULT_CSS = """
    DiffView { background: transparent; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """
    BINDINGS = [
        Binding("j", "scroll_down", "Down", show=False),
        Binding("k", "scroll_up", "Up", show=False),
        Binding("left", "shift(-8)", "Left", show=False),
        Binding("right", "shift(8)", "Right", show=False),
        Binding("ctrl+home", "scroll_home", "Top", show=False),
    ]
    HELP = "n and N jump between changes, t toggles one or two columns, c changes what it is compared with."

    def __init__(self, desk: Desk, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.desk = desk
        self.unified = False
        self.comparison: Comparison | None = None
        self._left: list[Line] = []
        self._right: list[Line] = []
        self._rows: list[Row] = []
        self._hunks: list[int] = []
        self._hunk: int | None = None
        self._shift = 0
        self._painted: tuple[object, ...] | None = None

    def show(self, comparison: Comparison, left: list[Line], right: list[Line]) -> None:
        """Two highlighted sources; opens at the first change."""
        self.comparison, self._left, self._right = comparison, left, right
        self._shift = 0
        self._lay()
        self._hunk = None
        if self._hunks:
            self.jump(1)
        else:
            self.scroll_home(animate=False)

    def toggle(self) -> None:
        self.unified = not self.unified
        self._lay()
        if self._hunk is not None and self._hunks:
            self._hunk = min(self._hunk, len(self._hunks) - 1)
            self._go(self._hunks[self._hunk])

    def _lay(self) -> None:
        if self.comparison is None:
            return
        self._rows = unified(self.comparison.rows) if self.unified else list(self.comparison.rows)
        self._hunks = hunk_starts(self._rows)
        self.extend(len(self._rows))
        self.refresh()

    def pulse(self) -> None:
        """Only a new theme needs painting again; texts never change under one."""
        if self._painted != (self.desk.themed,):
            self._painted = (self.desk.themed,)
            self.refresh()

    def place(self) -> str:
        """`hunk 2/5` or that there is none."""
        if self.comparison is None:
            return "comparing…"
        if not self._hunks:
            return "no difference"
        return f"hunk {1 if self._hunk is None else self._hunk + 1}/{len(self._hunks)}"

    def jump(self, direction: int) -> bool:
        """To the next or previous change; False when there is none."""
        if not self._hunks:
            return False
        if self._hunk is None:
            at = bisect.bisect_left(self._hunks, self.scroll_offset.y)
            target = at if direction > 0 else at - 1
        else:
            target = self._hunk + direction
        if not 0 <= target < len(self._hunks):
            return False
        self._hunk = target
        self._go(self._hunks[target])
        return True

    def _go(self, row: int) -> None:
        self.scroll_to(y=max(0, row - 3), animate=False, force=True)

    def action_shift(self, by: int) -> None:
        self._shift = max(0, self._shift + by)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = self.scroll_offset.y + y
        if index >= len(self._rows):
            return Strip.blank(width, self.base)
        row = self._rows[index]
        if self.unified:
            line = single_row(row, self._left, self._right, width, self._shift)
        else:
            bar = "|" if self.desk.glyphs.ascii else "│"
            line = split_row(row, self._left, self._right, width, self._shift, bar)
        return paint(line, width, self.desk).apply_style(self.base)
