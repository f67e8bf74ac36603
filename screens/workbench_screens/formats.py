"""Numbers as people read them: three significant digits, units that fit, nothing where nothing is known."""

from __future__ import annotations

import math
import time

NOTHING = "—"


def significant(value: float, digits: int = 3) -> str:
    """`digits` significant digits without an exponent between 1e-4 and 1e6."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    power = math.floor(math.log10(abs(value)))
    if power < -4 or power >= 6:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - power)
    return f"{value:.{decimals}f}"


def ratio(value: float | None) -> str:
    """A speedup: `1.84×`."""
    return NOTHING if value is None else f"{significant(value)}×"


def interval(value: float | None, lower: float | None, upper: float | None) -> str:
    """`1.84× [1.81 1.87]`; without bounds the ratio alone."""
    if value is None or lower is None or upper is None:
        return ratio(value)
    return f"{ratio(value)} [{significant(lower)} {significant(upper)}]"


def seconds(value: float | None) -> str:
    """A duration in the unit that fits: ns, µs, ms, s."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0 s"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(value) >= scale * 0.9995:
            return f"{significant(value / scale)} {unit}"
    return f"{significant(value / 1e-9)} ns"


def clock(value_s: float) -> str:
    """A span of the session: `00:03:12`."""
    whole = max(0, int(value_s))
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def bytes_(value: float | None) -> str:
    """Binary units: `1.50 GiB`."""
    if value is None:
        return "n/a"
    size = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{int(size)} B" if unit == "B" else f"{significant(size)} {unit}"
        size /= 1024
    return f"{significant(size)} TiB"


def percent(value: float | None) -> str:
    """A fraction 0..1 as `61 %`; None is "n/a"."""
    return "n/a" if value is None else f"{value * 100:.0f} %"


def floor(delta: float | None) -> str:
    """The A/A floor on |ln speedup| as `±1.1 %`."""
    return "n/a" if delta is None else f"±{(math.exp(delta) - 1) * 100:.1f} %"


def count(value: int | None) -> str:
    """A number of tokens or characters: `980`, `151k`, `2.00M`."""
    if value is None:
        return NOTHING
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale * 0.9995:
            return f"{significant(value / scale)}{unit}"
    return str(value)


def money(value: float | None) -> str:
    """An amount in the currency of the price table, which names none: `0.0142`, `3.20`."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if value >= 1 or value == 0 else significant(value, 3 if value >= 1e-3 else 2)


def hertz(value: float | None) -> str:
    if value is None:
        return "n/a"
    return f"{value / 1e9:.2f} GHz" if value >= 1e9 else f"{value / 1e6:.0f} MHz"


def measured(value: float | None, unit: str) -> str:
    """`55 °C`, `n/a` when the device cannot tell."""
    return "n/a" if value is None else f"{significant(value)} {unit}"


def when(at_s: float) -> str:
    """Local date and time of unix seconds."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at_s)) if at_s else NOTHING


def parse_clock(text: str) -> float | None:
    """Seconds of `1:30`, `00:01:30` or `90s`; None when it is no time."""
    text = text.strip()
    if text.endswith("s") and text[:-1].replace(".", "", 1).isdigit():
        return float(text[:-1])
    parts = text.split(":")
    if len(parts) not in (2, 3) or not all(part.isdigit() for part in parts):
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return float(total)
