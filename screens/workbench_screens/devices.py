"""What each device does, how it is, and the pairs it times. One widget for a CPU or eight GPUs."""

from __future__ import annotations

import bisect

import numpy as np
from textual.app import ComposeResult
from textual.containers import Horizontal

from workbench_screens import formats, medians, words
from workbench_screens.actions import bindings
from workbench_screens.curves import Series, chart
from workbench_screens.desk import Desk
from workbench_screens.lines import Line, fit
from workbench_screens.pane import Pane
from workbench_screens.population import boxed
from workbench_screens.words import Glyphs
from workbench_screens.workscreen import WorkScreen
from workbench_sessions.projection import Device, LaneSpan, PairSeries, Sample

WINDOWS_S = (30.0, 1920.0)


def lane(spans: list[LaneSpan], start_s: float, end_s: float, width: int) -> list[str]:
    """The activity that filled most of each of `width` slices; "" where nothing is known."""
    if width <= 0 or end_s <= start_s:
        return []
    slice_s = (end_s - start_s) / width
    first = max(0, bisect.bisect_right(spans, start_s, key=lambda span: span.start_s) - 1)
    filled: list[dict[str, float]] = [{} for _ in range(width)]
    for span in spans[first:]:
        a, b = max(span.start_s, start_s), min(end_s if span.end_s is None else span.end_s, end_s)
        if b <= a:
            continue
        for i in range(int((a - start_s) / slice_s), min(width, int((b - start_s) / slice_s) + 1)):
            left = start_s + i * slice_s
            share = min(b, left + slice_s) - max(a, left)
            if share > 0:
                filled[i][span.activity] = filled[i].get(span.activity, 0.0) + share
    return [max(slot, key=lambda name: slot[name]) if slot else "" for slot in filled]


def busy_share(spans: list[LaneSpan], start_s: float, end_s: float) -> float | None:
    """Share of the time not idle; None when nothing is known."""
    known = busy = 0.0
    for span in spans:
        a, b = max(span.start_s, start_s), min(end_s if span.end_s is None else span.end_s, end_s)
        if b > a:
            known += b - a
            busy += (b - a) if span.activity != "idle" else 0.0
    return min(1.0, busy / known) if known > 0 else None


LANE_STYLE = {"idle": "faint", "propose": "accent", "build": "slower", "verify": "pending", "time": "faster"}


def lane_lines(desk: Desk, window_s: float, width: int) -> list[Line]:
    p, glyphs = desk.projection, desk.glyphs
    end = desk.now_s()
    start = end - window_s
    out: list[Line] = []
    room = max(10, width - 18)
    for device in p.devices.values():
        spans = p.lanes.get(device.id, [])
        row: Line = [(fit(device.id, 7), "bold")]
        for activity in lane(spans, start, end, room):
            row.append((glyphs.lanes[activity] if activity else " ", LANE_STYLE.get(activity, "")))
        share = busy_share(spans, start, end)
        row.append((f" busy {formats.percent(share)}", "muted"))
        out.append(row)
    left, right = f"-{formats.clock(window_s)}", "now"
    out.append([(" " * 7, ""), (left + " " * max(1, room - len(left) - len(right)) + right, "muted")])
    key: Line = [(" " * 7, "")]
    for name, sign in glyphs.lanes.items():
        key += [(sign, LANE_STYLE[name]), (f" {name}   ", "muted")]
    out.append(key)
    return out or [[("no device yet", "muted")]]


class LanesPane(Pane):
    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="lanes")
        self.window_s = 120.0

    def state(self) -> tuple[object, ...]:
        # Twice a second is as fine as a cell of a lane.
        return self.desk.sessions, self.desk.themed, int(self.desk.now_s() * 2), self.window_s, self.desk.feed.live

    def draw(self, width: int, height: int) -> list[Line]:
        return lane_lines(self.desk, self.window_s, width)


def telemetry_lines(device: Device, samples: list[Sample], width: int, glyphs: Glyphs) -> list[Line]:
    """Words and strips; what the device cannot tell is "n/a"."""
    out: list[Line] = [
        [(device.id, "bold"), (f"  {device.name}", "muted")],
        [
            (
                f"{device.kind}  {device.cores or '?'} cores  {formats.bytes_(device.memory_bytes or None)}"
                f"  A/A floor {formats.floor(device.delta)}",
                "muted",
            )
        ],
    ]
    if device.too_noisy:
        out.append([("too noisy to judge", "slower")])
    if device.note:
        out.append([(device.note, "muted")])
    if not samples:
        return [*out, [("telemetry n/a", "muted")], []]
    last = samples[-1]
    cells = max(8, min(30, width - 26))
    use: list[float | None] = [s.utilisation for s in samples[-cells:]]
    memory: list[float | None] = [
        s.memory_used_bytes / s.memory_total_bytes if s.memory_used_bytes and s.memory_total_bytes else None
        for s in samples[-cells:]
    ]
    peak_power = max((s.power_w for s in samples if s.power_w is not None), default=0.0)
    power: list[float | None] = [s.power_w for s in samples[-cells:]]
    clocks = [s.clock_hz for s in samples if s.clock_hz is not None]
    clock: list[float | None] = [s.clock_hz for s in samples[-cells:]]
    rows = (
        ("use", formats.percent(last.utilisation), use, 1.0),
        ("memory", formats.bytes_(last.memory_used_bytes), memory, 1.0),
        ("power", formats.measured(last.power_w, "W"), power, peak_power * 1.001),
        ("clock", formats.hertz(last.clock_hz), clock, max(clocks, default=0.0) * 1.001),
    )
    for name, said, values, top in rows:
        bars = words.strip(values, cells, glyphs, top) if any(v is not None for v in values) else ""
        out.append([(fit(name, 7), "muted"), (fit(said, 10), ""), (bars, "pending")])
    heat = formats.measured(last.temperature_c, "°C")
    load = "n/a" if last.load is None else f"{last.load:.2f}"
    out.append([("heat   ", "muted"), (fit(heat, 10), ""), ("load ", "muted"), (load, "")])
    style = "slower" if last.throttle not in (None, "", "none") else ""
    out.append([("throttle ", "muted"), (last.throttle or ("n/a" if last.throttle is None else "none"), style)])
    out.append([])
    return out


class TelemetryPane(Pane):
    def state(self) -> tuple[object, ...]:
        p = self.desk.projection
        newest = tuple(samples[-1].at_s for samples in p.telemetry.values() if samples)
        return self.desk.sessions, self.desk.themed, newest, tuple(p.devices.values())

    def draw(self, width: int, height: int) -> list[Line]:
        p = self.desk.projection
        out: list[Line] = []
        for device in p.devices.values():
            out += telemetry_lines(device, p.telemetry.get(device.id, []), width, self.desk.glyphs)
        return out or [[("no device yet", "muted")]]


def pair_lines(series: PairSeries, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Both distributions on one scale, then the running median ratio with its interval."""
    logs = medians.logs_of(series)
    now = medians.running(logs)
    name = series.candidate or "the reference against itself"
    head: Line = [(name, "bold"), (f"  on {series.device}, {series.phase}", "muted")]
    if series.threads > 1:
        head.append((f", {series.threads} threads", "muted"))
    if now is None:
        return [head, [("no pairs yet", "muted")]]
    head.append((f"  {formats.interval(now.median, now.lower, now.upper)}", ""))
    head.append((f"  {now.pairs} pairs × {series.calls} calls", "muted"))
    every = np.array(series.reference_s + series.candidate_s)
    low, high = (float(v) for v in np.quantile(every, [0.005, 0.995]))
    bins = max(10, width - 24)
    out: list[Line] = [head, []]
    for label, values, style in (
        ("reference", series.reference_s, "pending"),
        ("candidate", series.candidate_s, "faster"),
    ):
        counts = medians.histogram(values, low, high, bins)
        top = max(counts) or 1
        bars = "".join(" " if n == 0 else words.strip([n / top], 1, glyphs, 1.001) for n in counts)
        median = float(np.median(values)) if values else None
        out.append([(fit(label, 10), style), (bars, style), (f" {formats.seconds(median)}", "")])
    ends = f"{formats.seconds(low)}".ljust(bins - len(formats.seconds(high))) + formats.seconds(high)
    out.append([(" " * 10, ""), (ends, "muted"), ("  0.5..99.5 %", "faint")])
    out.append([])
    rows = height - len(out)
    steps = medians.history(logs, max(10, width - 9))
    if rows >= 4 and len(steps) > 2:
        x = np.array([step.pairs for step in steps], dtype=np.float64)
        curve = Series(
            "running median ratio, band = 95 % by order statistics of these pairs (the verdict's own is the engine's)"
            if width > 110
            else "running median ratio, 95 % band",
            x,
            np.array([step.median for step in steps]),
            "faster",
            low=np.array([step.lower for step in steps]),
            high=np.array([step.upper for step in steps]),
        )
        out += chart(curve, width, rows, (1.0, float(x[-1])), glyphs, x_text="pairs")
    return out


class PairsPane(Pane):
    """The stream being timed now, or the chosen candidate's pairs."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="pairs")
        self.current = True

    def series(self) -> PairSeries | None:
        p = self.desk.projection
        if not self.current:
            shown = self.desk.shown()
            return self.desk.series(shown) if shown is not None else None
        timing = [device.id for device in p.devices.values() if device.activity == "time"]
        for name in [*timing, *p.current_pairs]:
            if name in p.current_pairs:
                return p.current_pairs[name]
        return None

    def state(self) -> tuple[object, ...]:
        series = self.series()
        size = len(series.reference_s) if series else 0
        who = (series.candidate, series.device, series.phase, series.reference_s[-1:]) if series else None
        return self.desk.sessions, self.desk.themed, self.current, size, who

    def draw(self, width: int, height: int) -> list[Line]:
        series = self.series()
        if series is None:
            text = "nothing timed yet" if self.current else "this candidate was never timed"
            return [[(text, "muted")]]
        return pair_lines(series, width, height, self.desk.glyphs)


class DevicesScreen(WorkScreen):
    NAME = "devices"
    CSS_PATH = ["workscreen.tcss", "devices.tcss"]
    BINDINGS = bindings("devices")

    def body(self) -> ComposeResult:
        yield boxed(LanesPane(self.desk), "Lanes")
        with Horizontal(id="lower"):
            yield boxed(TelemetryPane(self.desk, id="telemetry"), "Telemetry")
            yield boxed(PairsPane(self.desk), "Pairs timed now")

    def tick(self) -> None:
        lanes = self.query_one(LanesPane)
        height = max(1, len(self.desk.projection.devices)) + 4
        if lanes.styles.height is None or lanes.styles.height.value != height:
            lanes.styles.height = height
        super().tick()

    def action_window(self, factor: float) -> None:
        lanes = self.query_one(LanesPane)
        low, high = WINDOWS_S
        lanes.window_s = min(high, max(low, lanes.window_s * factor))
        lanes.pulse()

    def action_current(self) -> None:
        pairs = self.query_one(PairsPane)
        pairs.current = not pairs.current
        pairs.border_title = "Pairs timed now" if pairs.current else "Pairs of the chosen candidate"
        pairs.pulse()
