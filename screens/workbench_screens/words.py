"""Glyph and word for every state, so that nothing is said by colour alone; with a plain ASCII set."""

from __future__ import annotations

from msgspec import Struct

from workbench_screens import formats
from workbench_screens.lines import Span
from workbench_sessions.projection import Candidate

STAGES = ("build", "verify", "time", "judge", "done")


class Glyphs(Struct, frozen=True):
    """One character set. Each verdict has its own glyph, so that a black-and-white screen tells them apart."""

    verdicts: dict[str, str]
    best: str
    review: str
    pin: str
    accepted: str
    rejected: str
    on: str
    off: str
    live: str
    replay: str
    paused: str
    idle: str
    lanes: dict[str, str]
    bars: str
    marks: dict[str, str]
    rule: str
    head: str
    up: str
    down: str
    arrow: str
    ascii: bool = False


UNICODE = Glyphs(
    verdicts={
        "FASTER": "✔",
        "SLOWER": "↓",
        "SAME": "=",
        "AMBIGUOUS": "~",
        "WRONG": "✘",
        "FAILED": "✗",
        "CHEATING": "⚠",
    },
    best="★",
    review="?",
    pin="•",
    accepted="✓",
    rejected="✕",
    on="■",
    off="□",
    live="●",
    replay="▶",
    paused="‖",
    idle="·",
    lanes={"idle": "·", "propose": "░", "build": "▒", "verify": "▓", "time": "█"},
    bars="▁▂▃▄▅▆▇█",
    marks={"best": "★", "accept": "✓", "reject": "✕", "cheat": "⚠", "phase": "┆", "warning": "!"},
    rule="─",
    head="┼",
    up="▲",
    down="▼",
    arrow="→",
)
ASCII = Glyphs(
    verdicts={
        "FASTER": "+",
        "SLOWER": "-",
        "SAME": "=",
        "AMBIGUOUS": "~",
        "WRONG": "x",
        "FAILED": "X",
        "CHEATING": "!",
    },
    best="*",
    review="?",
    pin="o",
    accepted="v",
    rejected="x",
    on="#",
    off=".",
    live="*",
    replay=">",
    paused="=",
    idle=".",
    lanes={"idle": ".", "propose": "p", "build": "b", "verify": "v", "time": "T"},
    bars="_.-~=+*#",
    marks={"best": "*", "accept": "v", "reject": "x", "cheat": "!", "phase": ":", "warning": "?"},
    rule="-",
    head="|",
    up="^",
    down="v",
    arrow="->",
    ascii=True,
)

VERDICT_STYLE = {
    "FASTER": "faster",
    "SLOWER": "slower",
    "SAME": "pending",
    "AMBIGUOUS": "pending",
    "WRONG": "rejected",
    "FAILED": "rejected",
    "CHEATING": "cheating",
}
MARK_STYLE = {
    "best": "faster",
    "accept": "faster",
    "reject": "rejected",
    "cheat": "cheating",
    "phase": "muted",
    "warning": "slower",
}
LEVEL_STYLE = {
    "info": "muted",
    "verdict": "",
    "person": "accent",
    "warning": "slower",
    "cheat": "cheating",
}


def claimed(candidate: Candidate) -> bool:
    """Whether the measured ratio may be shown as a speedup: not when cheating, wrong, unclear, or not yet measured
    again in a fresh process. Slower and same claim nothing, so they show as they are.
    """
    if candidate.verdict == "FASTER":
        return candidate.confirmed
    return candidate.verdict in ("SLOWER", "SAME")


def speedup(candidate: Candidate) -> Span:
    """The speedup cell: `1.84× [1.81 1.87]`, in parentheses when it is no claim, pairs while timing."""
    if candidate.verdict is None:
        return (f"{candidate.pairs} pairs…", "pending") if candidate.pairs else (formats.NOTHING, "muted")
    if candidate.speedup is None:
        return formats.NOTHING, "muted"
    text = formats.interval(candidate.speedup, candidate.lower, candidate.upper)
    if claimed(candidate):
        return text, VERDICT_STYLE[candidate.verdict]
    return f"({text})", "muted"


def verdict(candidate: Candidate, glyphs: Glyphs) -> Span:
    """Glyph and word; a candidate that waits for a person or was decided on says so."""
    word = candidate.verdict
    if word is None:
        return ("…" if not glyphs.ascii else "..."), "pending"
    style = VERDICT_STYLE[word]
    text = f"{glyphs.verdicts[word]} {word}"
    if candidate.decision == "review":
        return f"{text} {glyphs.review}REVIEW", "accent"
    if candidate.decision == "accepted":
        return f"{text} {glyphs.accepted}accepted", style
    if candidate.decision == "rejected":
        return f"{text} {glyphs.rejected}rejected", "rejected"
    if word == "FASTER" and not candidate.confirmed:
        return f"{text} unconfirmed", "pending"
    return text, style


def stage(candidate: Candidate, glyphs: Glyphs) -> Span:
    """A bar of the cascade and the stage's word; a candidate that fell out shows how far it came."""
    word: str = candidate.stage
    if word == "done":
        reached = {"FAILED": 1, "WRONG": 2}.get(candidate.verdict or "", 5)
        if candidate.verdict == "FAILED" and candidate.pairs:
            reached = 3
        text = "done" if reached == 5 else "out"
        style = "" if reached == 5 else "muted"
    else:
        reached = STAGES.index(word) + 1 if word in STAGES else 0
        text = "new" if word == "proposed" else word
        style = "pending"
    return f"{glyphs.on * reached}{glyphs.off * (5 - reached)} {text}", style


def origin(candidate: Candidate) -> str:
    who = candidate.origin
    if who.policy == "person":
        return f"you: {who.person}" if who.person else "a person"
    return f"{who.policy} {who.model}" if who.model else who.policy


def badges(candidate: Candidate, best: str | None, glyphs: Glyphs) -> str:
    """Two characters before the id: best or waiting, pinned."""
    first = glyphs.best if candidate.id == best else glyphs.review if candidate.decision == "review" else " "
    return first + (glyphs.pin if candidate.pinned else " ")


def strip(values: list[float | None], width: int, glyphs: Glyphs, top: float = 1.0, bottom: float = 0.0) -> str:
    """The newest `width` values as bars from `bottom` to `top`; a space where there is none."""
    if top <= bottom:
        top = bottom + 1.0
    shown = values[-width:]
    bars = glyphs.bars
    out = []
    for value in shown:
        if value is None:
            out.append(" ")
        else:
            out.append(bars[min(len(bars) - 1, max(0, int((value - bottom) / (top - bottom) * len(bars))))])
    return "".join(out).rjust(width)
