"""Curves as braille dots: 2 × 4 of them a cell, with min/max decimation so that no spike is lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Dots = NDArray[np.bool_]

_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.uint16)
"""Bit of the dot in row y, column x of a braille cell (Unicode block 2800)."""


def decimate(x: Floats, y: Floats, x_low: float, x_high: float, columns: int) -> tuple[Floats, Floats]:
    """Lowest and highest y of each of `columns` equal slices of [x_low, x_high]; NaN where a slice has no point.

    `x` must not fall. Points outside the range and non-finite ones are left out.
    """
    low = np.full(columns, np.nan)
    high = np.full(columns, np.nan)
    if columns <= 0 or x.size == 0:
        return low, high
    span = x_high - x_low
    keep = np.isfinite(x) & np.isfinite(y) & (x >= x_low) & (x <= x_high)
    x, y = x[keep], y[keep]
    if x.size == 0:
        return low, high
    slot = np.zeros(x.size, dtype=np.int64)
    if span > 0:
        slot = np.minimum(((x - x_low) / span * columns).astype(np.int64), columns - 1)
    first = np.flatnonzero(np.diff(slot, prepend=-1))
    low[slot[first]] = np.minimum.reduceat(y, first)
    high[slot[first]] = np.maximum.reduceat(y, first)
    return low, high


def rows_of(values: Floats, y_low: float, y_high: float, rows: int) -> NDArray[np.int64]:
    """Dot row of each value, 0 at the top; -1 where there is none. Values outside the range sit on its edge."""
    span = y_high - y_low
    scaled = (y_high - values) / span if span > 0 else np.where(np.isfinite(values), 0.5, np.nan)
    out = np.full(values.size, -1, dtype=np.int64)
    good = np.isfinite(scaled)
    out[good] = np.clip(np.rint(scaled[good] * (rows - 1)), 0, rows - 1).astype(np.int64)
    return out


def curve(low: Floats, high: Floats, y_low: float, y_high: float, rows: int, step: bool = False) -> Dots:
    """Dots (rows × columns) of one decimated series, neighbours joined.

    `step` holds the last value over empty columns (a best-so-far line); otherwise gaps are bridged straight.
    """
    columns = low.size
    dots = np.zeros((rows, columns), dtype=np.bool_)
    top, bottom = rows_of(high, y_low, y_high, rows), rows_of(low, y_low, y_high, rows)
    filled = np.flatnonzero(top >= 0)
    before = -1
    for column in filled:
        a, b = int(top[column]), int(bottom[column])
        if before >= 0:
            _bridge(dots, before, int(column), (int(top[before]) + int(bottom[before])) // 2, (a + b) // 2, step)
        dots[a : b + 1, column] = True
        before = int(column)
    return dots


def _bridge(dots: Dots, x0: int, x1: int, y0: int, y1: int, step: bool) -> None:
    if step:
        dots[y0, x0:x1] = True
        dots[min(y0, y1) : max(y0, y1) + 1, x1] = True
        return
    if x1 - x0 == 1:
        half = (y0 + y1) // 2
        dots[min(y0, half) : max(y0, half) + 1, x0] = True
        dots[min(y1, half) : max(y1, half) + 1, x1] = True
        return
    count = max(x1 - x0, abs(y1 - y0))
    xs = np.rint(np.linspace(x0, x1, count + 1)).astype(np.int64)
    ys = np.rint(np.linspace(y0, y1, count + 1)).astype(np.int64)
    dots[ys, xs] = True


def band(low: Floats, high: Floats, y_low: float, y_high: float, rows: int) -> Dots:
    """Every other dot between two series, for a spread behind a mean; columns without a value stay empty."""
    columns = low.size
    dots = np.zeros((rows, columns), dtype=np.bool_)
    top, bottom = rows_of(high, y_low, y_high, rows), rows_of(low, y_low, y_high, rows)
    for column in np.flatnonzero((top >= 0) & (bottom >= 0)):
        dots[int(top[column]) : int(bottom[column]) + 1, column] = True
    shade = np.indices(dots.shape).sum(axis=0) % 2 == 0
    return np.asarray(dots & shade, dtype=np.bool_)


def interpolate(values: Floats) -> Floats:
    """Inner gaps filled straight; what lies before the first and after the last value stays NaN."""
    good = np.flatnonzero(np.isfinite(values))
    if good.size < 2:
        return values
    out = values.copy()
    inside = np.arange(good[0], good[-1] + 1)
    out[inside] = np.interp(inside, good, values[good])
    return out


def cells(dots: Dots) -> list[str]:
    """Braille text of a dot field whose height is a multiple of 4 and width of 2."""
    rows, columns = dots.shape
    blocks = dots.reshape(rows // 4, 4, columns // 2, 2)
    codes = (blocks * _BITS[None, :, None, :]).sum(axis=(1, 3))
    return ["".join(chr(0x2800 + int(code)) if code else " " for code in row) for row in codes]


def ascii_cells(dots: Dots) -> list[str]:
    """The same field without braille: the highest dot of a cell decides between `'`, `-`, `.` and `_`."""
    rows, columns = dots.shape
    blocks: Dots = np.logical_or(dots[:, 0::2], dots[:, 1::2]).reshape(rows // 4, 4, columns // 2)
    first, some = blocks.argmax(axis=1), np.asarray(blocks.any(axis=1))
    return [
        "".join("'-._"[int(first[y, x])] if some[y, x] else " " for x in range(columns // 2)) for y in range(rows // 4)
    ]


def smooth(values: Floats, amount: float) -> Floats:
    """Exponential smoothing with weight `amount` (0..1) on the past, unbiased at the start; NaN are passed over."""
    if amount <= 0:
        return values
    out = np.full(values.size, np.nan)
    mean, weight = 0.0, 0.0
    for i, value in enumerate(values.tolist()):
        if value == value:
            mean = amount * mean + (1 - amount) * value
            weight = amount * weight + (1 - amount)
        if weight > 0:
            out[i] = mean / weight
    return out
