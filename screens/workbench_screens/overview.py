"""The strip above the population: devices, best so far, what happens now."""

from __future__ import annotations

import numpy as np

from workbench_screens import braille, formats, medians, words
from workbench_screens.desk import Desk
from workbench_screens.lines import Line, cut
from workbench_screens.pane import Pane
from workbench_sessions.projection import Counts, Device, Projection


def device_line(desk: Desk, device: Device, width: int) -> Line:
    """`cpu0 ▇▇▆ timing c0212 34 pairs 1.86×`."""
    p, glyphs = desk.projection, desk.glyphs
    samples = p.telemetry.get(device.id, [])
    use = [sample.utilisation for sample in samples[-8:]]
    bars = words.strip(use, 8, glyphs) if any(value is not None for value in use) else "n/a".rjust(8)
    out: Line = [(f"{device.id} ", "bold"), (bars, "pending"), (" ", "")]
    style = "muted" if device.activity == "idle" else ""
    out.append((f"{glyphs.lanes[device.activity]} {device.activity}", style))
    if device.candidate:
        out.append((f" {device.candidate}", style))
    series = p.current_pairs.get(device.id)
    if device.activity == "time" and series is not None and series.candidate == (device.candidate or ""):
        now = medians.running(medians.logs_of(series))
        if now is not None:
            out.append((f" {now.pairs} pairs {formats.ratio(now.median)}", "pending"))
    if device.too_noisy:
        out.append((" too noisy", "slower"))
    return out


class DevicesStrip(Pane):
    def draw(self, width: int, height: int) -> list[Line]:
        p = self.desk.projection
        lines = [device_line(self.desk, device, width) for device in list(p.devices.values())[: max(1, height)]]
        return lines or [[("no device yet", "muted")]]


def best_lines(desk: Desk, width: int, height: int) -> list[Line]:
    """The best number and its curve over evaluations."""
    p, glyphs = desk.projection, desk.glyphs
    best = p.candidates.get(p.best) if p.best else None
    if best is None:
        head: Line = [("nothing faster yet", "muted")]
    elif best.confirmed:
        said = formats.interval(best.speedup, best.lower, best.upper)
        head = [(f"{glyphs.best} {said} ", "faster bold"), (best.id, "bold")]
    else:
        head = [(f"({formats.ratio(best.speedup)}) {best.id} unconfirmed", "pending")]
    curve = p.best_curve
    rows = max(1, height - 1)
    if len(curve) < 2:
        return [head]
    x = np.array([point.evaluations for point in curve] + [max(p.evaluations, curve[-1].evaluations)], dtype=float)
    y = np.array([point.speedup for point in curve] + [curve[-1].speedup], dtype=float)
    low, high = braille.decimate(x, y, 0.0, float(x[-1]), width * 2)
    dots = braille.curve(low, high, float(np.nanmin(y)), float(np.nanmax(y)), rows * 4, step=True)
    drawn = braille.ascii_cells(dots) if glyphs.ascii else braille.cells(dots)
    return [head, *([(text, "faster")] for text in drawn)]


class BestStrip(Pane):
    def state(self) -> tuple[object, ...]:
        p = self.desk.projection
        best = p.candidates.get(p.best) if p.best else None
        seq = best.changed_seq if best else 0
        return self.desk.sessions, self.desk.themed, p.best, seq, len(p.best_curve), p.evaluations

    def draw(self, width: int, height: int) -> list[Line]:
        return best_lines(self.desk, width, height)


def rate_per_minute(p: Projection, now_s: float, window_s: float = 60.0) -> float | None:
    """Candidates proposed in the last minute; None before there is a minute's worth of anything."""
    count = 0
    for candidate in reversed(p.candidates.values()):
        if candidate.proposed_at_s < now_s - window_s:
            break
        count += 1
    span = min(window_s, now_s - p.header.opened_at_s)
    return count / span * 60 if span > 5 else None


def now_lines(desk: Desk, width: int) -> list[Line]:
    """In flight, done by verdict, and the pace."""
    p, glyphs = desk.projection, desk.glyphs
    c: Counts = p.counts
    waiting = max(0, c.proposed - c.building - c.verifying - c.timing - c.done)
    lines: list[Line] = [
        [(f"wait {waiting}  build {c.building}  verify {c.verifying}  time {c.timing}  done {c.done}", "")],
        [],
        [],
        [],
    ]
    tallies = (
        ("FASTER", c.faster),
        ("SLOWER", c.slower),
        ("SAME", c.same),
        ("AMBIGUOUS", c.ambiguous),
        ("WRONG", c.wrong),
        ("FAILED", c.failed),
        ("CHEATING", c.cheating),
    )
    for i, (word, count) in enumerate(tallies):
        style = words.VERDICT_STYLE[word] if count else "muted"
        lines[1 + (i > 2) + (i > 4)].append((f"{glyphs.verdicts[word]} {word.lower()} {count}  ", style))
    pace = rate_per_minute(p, desk.now_s())
    said = "pace n/a" if pace is None else f"{formats.significant(pace)} candidates/min"
    queue = f"  {c.review} wait for you" if c.review else ""
    lines.append([(said, "muted"), (queue, "accent bold")])
    if p.header.steering:
        lines.append([(cut("steer: " + p.header.steering.splitlines()[-1], width), "muted")])
    return lines


class NowStrip(Pane):
    def draw(self, width: int, height: int) -> list[Line]:
        return now_lines(self.desk, width)
