"""How the search and the policy learn, and what it costs: curves with one cursor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np
from textual import events
from textual.app import ComposeResult
from textual.containers import Grid

from workbench_screens import braille, formats
from workbench_screens.actions import bindings
from workbench_screens.curves import Series, chart
from workbench_screens.desk import Desk
from workbench_screens.lines import Line
from workbench_screens.pane import Pane
from workbench_screens.workscreen import WorkScreen
from workbench_sessions.projection import BestPoint, PolicyStep, Projection

Axis = Literal["evaluations", "steps", "time", "cost"]
Made = TypeVar("Made")
AXES: tuple[Axis, ...] = ("evaluations", "steps", "time", "cost")
SMOOTHING = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95)
CURVES = ("best", "cost", "reward", "success", "entropy", "loss", "kl")
"""`cost` is the best over what was spent on models, shown where one was asked; `kl` gives way to it."""
TITLES = {
    "best": "best so far (×, FASTER ones)",
    "cost": "best against what was spent",
    "reward": "group mean of ln speedup ± std",
    "success": "success rate of a group",
    "entropy": "policy entropy",
    "loss": "policy loss",
    "kl": "KL to the old policy",
}
STYLES = {
    "best": "faster",
    "cost": "faster",
    "reward": "pending",
    "success": "accent",
    "entropy": "cheating",
    "loss": "slower",
    "kl": "primary",
}


class View:
    """What the person set: x axis, smoothing, cursor (index into the points of the x axis)."""

    def __init__(self) -> None:
        self.axis: Axis = "evaluations"
        self.smoothing = 0
        self.cursor: int | None = None
        self._kept: dict[str, tuple[tuple[object, ...], Any]] = {}

    def kept(self, name: str, key: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """`make()` again only when the key changed: columns of a thousand steps are not built for every repaint."""
        found = self._kept.get(name)
        if found is None or found[0] != key:
            found = self._kept[name] = (key, make())
        made: Made = found[1]
        return made

    def key(self) -> tuple[object, ...]:
        return self.axis, self.smoothing, self.cursor


def positions(p: Projection, axis: Axis) -> tuple[list[float], list[int], list[float]]:
    """x, seq and time of each policy step; of each new best when the policy does not learn."""
    if p.policy_steps:
        rows: list[tuple[float, int, float]] = [(_x(step, axis, p), step.seq, step.at_s) for step in p.policy_steps]
    else:
        rows = [(_x(point, axis, p), point.seq, point.at_s) for point in p.best_curve]
    return [x for x, _, _ in rows], [seq for _, seq, _ in rows], [at for _, _, at in rows]


def _x(step: PolicyStep | BestPoint, axis: Axis, p: Projection) -> float:
    if axis == "cost":
        return step.money if priced(p) else float(step.tokens)
    if axis == "time":
        return step.at_s - p.header.opened_at_s
    return float(step.step) if axis == "steps" and isinstance(step, PolicyStep) else float(step.evaluations)


def priced(p: Projection) -> bool:
    """Whether cost means money; else it means tokens."""
    return p.spent_money > 0


def cost(p: Projection) -> tuple[float, float | None]:
    """Spent and cap, in the unit of the cost axis."""
    caps = p.header.budget
    return (p.spent_money, caps.money) if priced(p) else (float(p.spent_tokens), caps.tokens)


def _column(values: list[float | None]) -> braille.Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def series_of(p: Projection, name: str, axis: Axis, smoothing: float) -> Series:
    """One curve of the projection over one axis."""
    steps = p.policy_steps
    x = np.array([_x(step, axis, p) for step in steps], dtype=np.float64)
    if name in ("best", "cost"):
        return _best(p, name, axis, steps, x)
    pick: dict[str, list[float | None]] = {
        "reward": [step.group_mean for step in steps],
        "success": [step.success_rate for step in steps],
        "entropy": [step.entropy for step in steps],
        "loss": [step.loss for step in steps],
        "kl": [step.kl for step in steps],
    }
    y = braille.smooth(_column(pick[name]), smoothing)
    low = high = None
    if name == "reward":
        spread = braille.smooth(_column([step.group_std for step in steps]), smoothing)
        low, high = y - spread, y + spread
    return Series(TITLES[name], x, y, STYLES[name], low=low, high=high)


def _best(p: Projection, name: str, axis: Axis, steps: list[PolicyStep], step_x: braille.Floats) -> Series:
    curve = p.best_curve
    at = np.array([point.at_s for point in curve], dtype=np.float64)
    if axis == "evaluations":
        x = np.array([point.evaluations for point in curve], dtype=np.float64)
        end = float(p.evaluations)
    elif axis == "cost":
        x, end = np.array([_x(point, axis, p) for point in curve], dtype=np.float64), cost(p)[0]
    elif axis == "time":
        x, end = at - p.header.opened_at_s, p.at_s - p.header.opened_at_s
    else:
        times = np.array([step.at_s for step in steps], dtype=np.float64)
        x = np.searchsorted(times, at).astype(np.float64)
        end = float(step_x[-1]) if step_x.size else 0.0
    y = np.array([point.speedup for point in curve], dtype=np.float64)
    if y.size:
        x, y = np.append(x, max(end, float(x[-1]))), np.append(y, y[-1])
    title = f"best against {'money' if priced(p) else 'tokens'} spent" if name == "cost" else TITLES[name]
    return Series(title, x, y, STYLES[name], step=True)


def x_range(p: Projection, axis: Axis) -> tuple[float, float]:
    """One range for all curves, so that they stand over each other."""
    if axis == "evaluations":
        return 0.0, max(1.0, float(p.evaluations))
    if axis == "steps":
        return 0.0, float(max(1, p.policy_steps[-1].step if p.policy_steps else 1))
    if axis == "cost":
        spent, cap = cost(p)
        # Up to the cap once it is in sight; before, the curve would be nothing but its beginning.
        return 0.0, max(spent * 1.02, cap * 1.02 if cap and spent >= cap / 5 else 0.0, 1e-6 if priced(p) else 1.0)
    return 0.0, max(1.0, p.at_s - p.header.opened_at_s)


def marks_on(p: Projection, axis: Axis) -> list[tuple[float, str]]:
    """Phase changes, decisions and cheats at their place on the axis; many at one place are one."""
    wanted = [mark for mark in p.marks if mark.kind in ("phase", "accept", "reject", "cheat")]
    if not wanted:
        return []
    at = np.array([mark.at_s for mark in wanted], dtype=np.float64)
    if axis == "time":
        x = at - p.header.opened_at_s
    else:
        xs, _, times = positions(p, axis)
        if not times:
            return []
        x = np.interp(at, np.array(times), np.array(xs))
    order = {"phase": 0, "reject": 1, "accept": 2, "cheat": 3}
    pairs = [(float(value), mark.kind) for value, mark in zip(x, wanted, strict=True)]
    return sorted(pairs, key=lambda pair: order[pair[1]])


class CurvePane(Pane):
    def __init__(self, desk: Desk, view: View, name: str, classes: str) -> None:
        super().__init__(desk, id=f"curve-{name}", classes=classes)
        self.view, self.curve = view, name
        # Apart, so that six curves do not fall into one tick.
        self.rest_s = 0.5 + 0.1 * CURVES.index(name)

    @property
    def axis(self) -> Axis:
        return "cost" if self.curve == "cost" else self.view.axis

    def urgent(self) -> tuple[object, ...]:
        return (*super().urgent(), *self.view.key())

    def state(self) -> tuple[object, ...]:
        p = self.desk.projection
        newest = p.policy_steps[-1].seq if p.policy_steps else 0
        end = {"time": int(p.at_s), "cost": p.spent_tokens}.get(self.axis, p.evaluations)
        key = (self.desk.sessions, self.desk.themed, newest, len(p.best_curve), len(p.marks), end)
        return (*key, *self.view.key())

    def draw(self, width: int, height: int) -> list[Line]:
        p, view = self.desk.projection, self.view
        smoothing = SMOOTHING[view.smoothing]
        newest = p.policy_steps[-1].seq if p.policy_steps else 0
        axis = self.axis
        places = (self.desk.sessions, newest, len(p.best_curve), axis)
        xs, _, _ = view.kept(f"places {axis}", places, lambda: positions(p, axis))
        cursor = xs[view.cursor] if view.cursor is not None and view.cursor < len(xs) else None
        # The best line reaches to the present, the others end at their last step.
        end = p.at_s if self.curve in ("best", "cost") else 0.0
        series = view.kept(self.curve, (*places, smoothing, end), lambda: series_of(p, self.curve, axis, smoothing))
        return chart(
            series,
            width,
            max(4, height),
            x_range(p, axis),
            self.desk.glyphs,
            cursor=cursor,
            marks=view.kept(f"marks {axis}", (*places, len(p.marks)), lambda: marks_on(p, axis)),
            x_text={"evaluations": "evals", "steps": "steps", "time": "s"}.get(
                axis, "money" if priced(p) else "tokens"
            ),
            limit=cost(p)[1] if axis == "cost" and self.curve in ("best", "cost") else None,
        )

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor there."""
        p = self.desk.projection
        xs, _, _ = positions(p, self.axis)
        columns = self.size.width - 9
        if not xs or columns < 2 or event.x < 9:
            return
        low, high = x_range(p, self.axis)
        wanted = low + (event.x - 9) / (columns - 1) * (high - low)
        self.view.cursor = int(np.argmin(np.abs(np.array(xs) - wanted)))
        for pane in self.screen.query(Pane):
            pane.pulse()


class ReadingLine(Pane):
    """Axis, smoothing, and where the cursor stands."""

    def __init__(self, desk: Desk, view: View) -> None:
        super().__init__(desk, id="reading")
        self.view = view

    def state(self) -> tuple[object, ...]:
        return (*self.desk.state(), *self.view.key())

    def draw(self, width: int, height: int) -> list[Line]:
        p, view = self.desk.projection, self.view
        out: Line = [(" over ", "muted"), (view.axis, "accent"), ("  smoothing ", "muted")]
        out.append((formats.significant(SMOOTHING[view.smoothing], 2), "accent"))
        newest = p.policy_steps[-1].seq if p.policy_steps else 0
        places = (self.desk.sessions, newest, len(p.best_curve), view.axis)
        xs, _, times = view.kept(f"places {view.axis}", places, lambda: positions(p, view.axis))
        if view.cursor is not None and view.cursor < len(xs):
            at = formats.clock(times[view.cursor] - p.header.opened_at_s)
            out.append((f"  cursor {view.axis} {formats.significant(xs[view.cursor])} at {at}", "accent bold"))
            out.append(("  enter replays from there, esc drops it", "muted"))
        elif xs:
            out.append((f"  {len(p.policy_steps)} policy steps  ← → read values", "muted"))
        return [out]


class RewardsScreen(WorkScreen):
    NAME = "rewards"
    CSS_PATH = ["workscreen.tcss", "rewards.tcss"]
    BINDINGS = bindings("rewards")

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.view = View()

    def body(self) -> ComposeResult:
        yield ReadingLine(self.desk, self.view)
        with Grid(id="curves"):
            for i, name in enumerate(CURVES):
                yield CurvePane(self.desk, self.view, name, "second" if i > 3 else "first")

    def tick(self) -> None:
        self.set_class(self.desk.projection.prompts > 0, "-asked")
        super().tick()

    def action_axis(self) -> None:
        self.view.axis = AXES[(AXES.index(self.view.axis) + 1) % len(AXES)]
        self.tick()

    def action_smooth(self, by: int) -> None:
        self.view.smoothing = min(len(SMOOTHING) - 1, max(0, self.view.smoothing + by))
        self.tick()

    def action_cursor(self, by: int) -> None:
        xs, _, _ = positions(self.desk.projection, self.view.axis)
        if xs:
            at = len(xs) - 1 if self.view.cursor is None else self.view.cursor + by
            self.view.cursor = min(len(xs) - 1, max(0, at))
        self.tick()

    def action_seek(self) -> None:
        _, seqs, _ = positions(self.desk.projection, self.view.axis)
        if self.view.cursor is None or self.view.cursor >= len(seqs):
            self.notify("put the cursor on a point first: left and right", markup=False)
            return
        self.desk.feed.seek_seq(seqs[self.view.cursor])
        self.view.cursor = None
        self.tick()

    def action_loosen(self) -> None:
        self.view.cursor = None
        self.tick()
