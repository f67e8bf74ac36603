"""Labelled curves in braille: ranges, ticks, bands, marks and a cursor, as lines."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from workbench_screens import braille, formats
from workbench_screens.braille import Dots, Floats
from workbench_screens.lines import Line, fit
from workbench_screens.words import MARK_STYLE, Glyphs


class Series(Struct, frozen=True):
    """One curve. `low`/`high` are an optional band. x never falls; NaN means no value."""

    title: str
    x: Floats
    y: Floats
    style: str
    step: bool = False
    low: Floats | None = None
    high: Floats | None = None


def span(values: list[Floats]) -> tuple[float, float]:
    """Range that holds all finite values, a little wider; a constant gets a range around it."""
    joined = np.concatenate(values) if values else np.zeros(0)
    joined = joined[np.isfinite(joined)]
    if joined.size == 0:
        return 0.0, 1.0
    low, high = float(joined.min()), float(joined.max())
    pad = (high - low) * 0.05 if high > low else max(abs(high) * 0.1, 1e-6)
    return low - pad, high + pad


def ticks(low: float, high: float, count: int) -> list[float]:
    """At most about `count` round numbers inside the range."""
    if not high > low or count < 1:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 5, 10) if m * power >= raw), 10 * power)
    first = math.ceil(low / step - 1e-9) * step
    return [first + i * step for i in range(math.floor((high - first) / step + 1e-9) + 1)]


def tick_text(value: float, step: float) -> str:
    """Short, with the decimals that the distance of the ticks asks for."""
    if value and (abs(value) >= 1e5 or abs(step) < 1e-4):
        return f"{value:.1e}"
    decimals = max(0, -math.floor(math.log10(step))) if step > 0 else 2
    return f"{value + 0.0:.{decimals}f}"


def chart(
    series: Series,
    width: int,
    height: int,
    x_range: tuple[float, float],
    glyphs: Glyphs,
    *,
    cursor: float | None = None,
    marks: list[tuple[float, str]] | None = None,
    x_text: str = "",
    limit: float | None = None,
) -> list[Line]:
    """`height` lines: a title with the value under the cursor (or the last), the curve, an x axis.

    `marks` are (x, kind) drawn on the axis. `limit` is an x that cannot be passed: a line, named in the title.
    """
    label = 8
    columns, rows = max(1, width - label - 1), max(1, height - 2)
    finite = series.y[np.isfinite(series.y)]
    head: Line = [(series.title, "bold")]
    if finite.size == 0:
        return [head, [("  no values: " + ("not reported by this policy"), "muted")]]
    at = _read(series, cursor)
    head.append((f"  {formats.significant(at)}" if at is not None else "  n/a", series.style))
    if cursor is None and finite.size > 1:
        head.append((f"  min {formats.significant(float(finite.min()))}", "muted"))
        head.append((f"  max {formats.significant(float(finite.max()))}", "muted"))
    shown = [series.y]
    if series.low is not None and series.high is not None:
        shown += [series.low, series.high]
    y_low, y_high = span(shown)
    x_low, x_high = x_range
    line_dots = _dots(series, x_range, columns * 2, rows * 4, y_low, y_high)
    band_dots: Dots | None = None
    if series.low is not None and series.high is not None:
        low, _ = braille.decimate(series.x, series.low, x_low, x_high, columns * 2)
        _, high = braille.decimate(series.x, series.high, x_low, x_high, columns * 2)
        filled = braille.interpolate(low), braille.interpolate(high)
        band_dots = braille.band(filled[0], filled[1], y_low, y_high, rows * 4)
    body = _body(line_dots, band_dots, series.style, glyphs)
    if limit is not None:
        head.append((f"  cap {formats.significant(limit)}", "slower"))
    if limit is not None and x_low <= limit <= x_high and x_high > x_low:
        _cross(body, int((limit - x_low) / (x_high - x_low) * (columns - 1)), glyphs, "slower")
    if cursor is not None and x_high > x_low:
        _cross(body, int((cursor - x_low) / (x_high - x_low) * (columns - 1)), glyphs)
    labels = _y_labels(y_low, y_high, rows)
    bar = "|" if glyphs.ascii else "┤"
    lines: list[Line] = [head]
    for i, row in enumerate(body):
        text = labels.get(i, "")
        lines.append([(fit(text, label, right=True), "muted"), (bar if text else _edge(glyphs), "faint"), *row])
    lines.append(
        [(fit(x_text, label - 1, right=True) + " ", "muted"), *_axis(x_low, x_high, columns + 1, glyphs, marks or [])]
    )
    return lines


def _edge(glyphs: Glyphs) -> str:
    return "|" if glyphs.ascii else "│"


def _dots(series: Series, x_range: tuple[float, float], columns: int, rows: int, low: float, high: float) -> Dots:
    bottom, top = braille.decimate(series.x, series.y, x_range[0], x_range[1], columns)
    return braille.curve(bottom, top, low, high, rows, series.step)


def _body(line: Dots, band: Dots | None, style: str, glyphs: Glyphs) -> list[Line]:
    """A cell with the curve in it has the curve's style, one with the band alone is faint."""
    draw = braille.ascii_cells if glyphs.ascii else braille.cells
    front = draw(line)
    if band is None:
        return [[(text, style)] for text in front]
    back = draw(band)
    mixed = draw(line | band)
    out: list[Line] = []
    for own, behind, both in zip(front, back, mixed, strict=True):
        row: Line = []
        for a, b, c in zip(own, behind, both, strict=True):
            word = style if a != " " else "faint" if b != " " else ""
            char = c if not glyphs.ascii or a == " " else a
            if glyphs.ascii and a == " " and b != " ":
                char = ":"
            if row and row[-1][1] == word:
                row[-1] = (row[-1][0] + char, word)
            else:
                row.append((char, word))
        out.append(row)
    return out


def _cross(body: list[Line], column: int, glyphs: Glyphs, word: str = "accent bold") -> None:
    sign = _edge(glyphs)
    for i, row in enumerate(body):
        at = 0
        out: Line = []
        for text, style in row:
            if at <= column < at + len(text):
                k = column - at
                inner = text[k] if text[k] != " " else sign
                out += [(text[:k], style), (inner, word), (text[k + 1 :], style)]
            else:
                out.append((text, style))
            at += len(text)
        body[i] = [(text, style) for text, style in out if text]


def _y_labels(low: float, high: float, rows: int) -> dict[int, str]:
    marks = ticks(low, high, max(1, rows // 2))
    step = marks[1] - marks[0] if len(marks) > 1 else high - low
    out: dict[int, str] = {}
    for value in marks:
        row = min(rows - 1, max(0, int((high - value) / (high - low) * rows))) if high > low else 0
        out.setdefault(row, tick_text(value, step))
    return out


def _axis(low: float, high: float, width: int, glyphs: Glyphs, marks: list[tuple[float, str]]) -> Line:
    """Tick numbers, and marks where they fall but never over a number."""
    cells: list[tuple[str, str]] = [(" ", "")] * width
    numbers: set[int] = set()
    values = ticks(low, high, max(1, width // 12))
    step = values[1] - values[0] if len(values) > 1 else max(high - low, 1e-9)
    for value in values:
        text = tick_text(value, step)
        place = int((value - low) / (high - low) * (width - 1)) if high > low else 0
        start = min(max(0, place - len(text) // 2), max(0, width - len(text)))
        if all(cells[i][0] == " " for i in range(max(0, start - 1), min(width, start + len(text) + 1))):
            for i, char in enumerate(text[:width]):
                cells[start + i] = (char, "muted")
                numbers.add(start + i)
    for value, kind in marks:
        if high > low and low <= value <= high:
            place = int((value - low) / (high - low) * (width - 1))
            # A number under a mark would be a wrong number: the mark steps aside, at most a little.
            near = [(abs(i - place), i) for i in range(max(0, place - 3), min(width, place + 4)) if i not in numbers]
            if near:
                cells[min(near)[1]] = (glyphs.marks.get(kind, "|"), MARK_STYLE.get(kind, "muted"))
    return cells


def _read(series: Series, cursor: float | None) -> float | None:
    """The value at or before the cursor; without one the last."""
    good = np.isfinite(series.y)
    x, y = series.x[good], series.y[good]
    if x.size == 0:
        return None
    if cursor is None:
        return float(y[-1])
    index = int(np.searchsorted(x, cursor, side="right")) - 1
    return float(y[index]) if index >= 0 else None
