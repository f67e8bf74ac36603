"""Plots as SVG text of our own: no scripts, no fonts, colours by CSS class so that light and dark both work. Pure.

Everything that is text in a plot is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from msgspec import Struct

WIDTH, HEIGHT = 680, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 16, 48


class Dot(Struct, frozen=True):
    """A point of the scatter: `x` claimed, `y` refereed (`low`, `high` its interval), `mark` a CSS class."""

    label: str
    x: float
    y: float
    mark: str
    low: float | None = None
    high: float | None = None
    hollow: bool = False


class Axis:
    """A logarithmic axis from values to pixels, with ticks at 1, 2, 5 times powers of ten."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        kept = [v for v in values if v > 0 and math.isfinite(v)] or [1.0]
        low, high = math.log(min(*kept, 1.0)), math.log(max(*kept, 1.0))
        pad = max(0.05 * (high - low), 0.1)
        self._low, self._high = low - pad, high + pad
        self._start, self._end = start, end

    @property
    def ends(self) -> tuple[float, float]:
        """The values at its two ends."""
        return math.exp(self._low), math.exp(self._high)

    def at(self, value: float) -> float:
        """Pixels; clamped to the axis."""
        share = (math.log(max(value, 1e-12)) - self._low) / (self._high - self._low)
        return round(self._start + min(1.0, max(0.0, share)) * (self._end - self._start), 1)

    def ticks(self) -> list[float]:
        """At most nine of them."""
        low, high = math.floor(self._low / math.log(10)), math.ceil(self._high / math.log(10))
        for digits in ((1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0,)):
            found = [
                d * 10.0**e
                for e in range(low, high + 1)
                for d in digits
                if self._low <= math.log(d) + e * math.log(10) <= self._high
            ]
            if len(found) <= 9:
                return found
        return found[:: math.ceil(len(found) / 9)]


def scatter(dots: Sequence[Dot]) -> str:
    """Refereed over claimed, both logarithmic; on the diagonal a claim holds."""
    ends = [v for dot in dots for v in (dot.y, dot.low, dot.high) if v is not None]
    x, y = Axis([d.x for d in dots], LEFT, WIDTH - RIGHT), Axis(ends, HEIGHT - BOTTOM, TOP)
    parts = [*_grid(x, y), _diagonal(x, y)]
    for dot in dots:
        px, py = x.at(dot.x), y.at(dot.y)
        title = f"<title>{escape(dot.label)}</title>"
        parts.append(f'<g class="{escape(dot.mark)}">{title}')
        if dot.low is not None and dot.high is not None:
            parts.append(f'<line class="bar" x1="{px}" x2="{px}" y1="{y.at(dot.low)}" y2="{y.at(dot.high)}"/>')
        kind = "hollow" if dot.hollow else "dot"
        parts.append(f'<circle class="{kind}" cx="{px}" cy="{py}" r="4"/></g>')
    return _svg(parts, "claimed speedup", "refereed speedup")


def ranked(claimed: Sequence[float], refereed: Sequence[float]) -> str:
    """Both lists from the fastest to the slowest, each sorted by itself."""
    count = max(len(claimed), len(refereed), 1)
    y = Axis([*claimed, *refereed], HEIGHT - BOTTOM, TOP)

    def px(i: int) -> float:
        return round(LEFT + (WIDTH - RIGHT - LEFT) * i / count, 1)

    parts = _grid(None, y)
    for name, values in (("claimed", claimed), ("refereed", refereed)):
        points = []
        for i, value in enumerate(sorted(values, reverse=True)):
            points += [f"{px(i)},{y.at(value)}", f"{px(i + 1)},{y.at(value)}"]
        parts.append(f'<polyline class="curve {name}" points="{" ".join(points)}"/>')
    for i in sorted({0, count // 2, count}):
        parts.append(f'<text class="tick" x="{px(i)}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{i}</text>')
    return _svg(parts, "rows, fastest first", "speedup")


def stacked(bars: Sequence[tuple[str, Sequence[tuple[str, str, int]]]]) -> str:
    """One bar of shares for each (name, [(label, CSS class, count)]), the counts written where they fit."""
    step, left, width = 34, 60, WIDTH - 60 - RIGHT
    parts = []
    for i, (name, pieces) in enumerate(bars):
        total = sum(n for _, _, n in pieces) or 1
        top, at = 8 + i * step, float(left)
        parts.append(f'<text class="tick" x="{left - 8}" y="{top + 16}" text-anchor="end">{escape(name)}</text>')
        for label, mark, n in pieces:
            wide = width * n / total
            title = f"<title>{escape(f'{name}: {n} {label}')}</title>"
            count = f'<text class="count" x="{at + wide / 2:.1f}" y="{top + 16}">{n}</text>' if wide > 18 else ""
            parts.append(
                f'<g class="{escape(mark)}">{title}<rect class="piece" x="{at:.1f}" y="{top}" '
                f'width="{wide:.1f}" height="24"/>{count}</g>'
            )
            at += wide
    height = 16 + len(bars) * step
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(parts)}</svg>'


def _grid(x: Axis | None, y: Axis) -> list[str]:
    parts = []
    for value in y.ticks():
        at = y.at(value)
        parts.append(f'<line class="grid{_one(value)}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{at + 4}" text-anchor="end">{value:g}×</text>')
    for value in x.ticks() if x is not None else ():
        assert x is not None
        at = x.at(value)
        parts.append(f'<line class="grid{_one(value)}" x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        label = f'x="{at}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle"'
        parts.append(f'<text class="tick" {label}>{value:g}×</text>')
    return parts


def _one(value: float) -> str:
    return " one" if value == 1.0 else ""


def _diagonal(x: Axis, y: Axis) -> str:
    """Where refereed equals claimed, as far as both axes go."""
    low, high = max(x.ends[0], y.ends[0]), min(x.ends[1], y.ends[1])
    if low >= high:
        return ""
    return f'<line class="diagonal" x1="{x.at(low)}" y1="{y.at(low)}" x2="{x.at(high)}" y2="{y.at(high)}"/>'


def _svg(parts: Sequence[str], below: str, beside: str) -> str:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    labels = (
        f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{below}</text>'
        f'<text class="label" transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{beside}</text>'
    )
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}{labels}</svg>'
