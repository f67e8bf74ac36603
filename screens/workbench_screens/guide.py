"""Help made from the action table, the concepts in a few lines, and the session's log."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal

from workbench_screens import formats, words
from workbench_screens.actions import ACTIONS, EVERYWHERE, GROUPS, key_text
from workbench_screens.actions import bindings as bindings_of
from workbench_screens.desk import Desk
from workbench_screens.lines import Line, fit, wrap
from workbench_screens.pane import Pane
from workbench_screens.population import boxed
from workbench_screens.workscreen import WorkScreen

CONCEPTS = (
    ("candidate", "one proposed kernel; it goes through build, verify, time, judge, and gets a verdict."),
    ("verdict", "made by the engine alone, from output bytes and its own clock."),
    ("speedup", "time of the reference / time of the candidate, measured in pairs, with its confidence interval."),
    ("( )", "a number in parentheses is no claim: unconfirmed, unclear, wrong, or cheating."),
    ("confirmed", "measured again in a fresh process with fresh seeds."),
    ("A/A floor", "what the reference shows against itself; nothing smaller is believed."),
    ("review mode", "candidates wait for you (a, r) before they can be parents."),
    ("LIVE, REPLAY", "in replay everything is shown as it was; decisions are off until L."),
    ("prompt", "what a model was asked; the transcript shows it with the answer and the candidates that came of it."),
    ("tokens ~", "counted by us while an answer is written, or where a server does not tell."),
    ("contrast", "a slow and a fast code that a proposal was shown."),
)


def guide_lines(desk: Desk, width: int) -> list[Line]:
    """All keys by group, then concepts and glyphs."""
    out: list[Line] = []
    for group in GROUPS:
        out.append([(group, "accent bold")])
        for act in ACTIONS:
            if act.group != group:
                continue
            where = "" if act.where == EVERYWHERE else f" ({act.where})"
            text = f"{act.label}{where}: {act.tip}"
            for i, part in enumerate(wrap(text, max(10, width - 10))):
                out.append([(fit(key_text(act, desk.keys) if i == 0 else "", 9) + " ", "bold"), (part, "")])
        out.append([])
    out.append([("Concepts", "accent bold")])
    for name, text in CONCEPTS:
        for i, part in enumerate(wrap(text, max(10, width - 14))):
            out.append([(fit(name if i == 0 else "", 13) + " ", "bold"), (part, "")])
    out.append([])
    out.append([("Signs", "accent bold")])
    glyphs = desk.glyphs
    for word, sign in glyphs.verdicts.items():
        out.append([(f"{sign} {word}", words.VERDICT_STYLE[word])])
    out.append([(f"{glyphs.best} best   {glyphs.review} waits for you   {glyphs.pin} pinned", "")])
    out.append([])
    out.append([("This session", "accent bold")])
    out += session_lines(desk, width)
    return out


def session_lines(desk: Desk, width: int) -> list[Line]:
    """Machine and settings: what a bug report needs."""
    h = desk.projection.header
    facts = [f"{h.name}  {h.session_id}  seed {h.seed}  workbench {h.version}"]
    if h.task is not None:
        dims = ", ".join(f"{name} {value}" for name, value in h.task.dims.items())
        facts.append(f"{h.task.title} ({h.task.dtype}; {dims})")
    if h.host is not None:
        facts.append(f"{h.host.cpu}, {h.host.cores} cores, {formats.bytes_(h.host.memory_bytes)}, {h.host.os}")
        facts.append(f"Python {h.host.python}, torch {h.host.torch}, {h.host.compiler}")
    if h.settings:
        facts.append("  ".join(f"{name}={value}" for name, value in h.settings.items()))
    return [[(part, "muted")] for fact in facts for part in wrap(fact, width)]


class GuidePane(Pane, can_focus=True):
    def state(self) -> tuple[object, ...]:
        return self.desk.sessions, self.desk.themed, tuple(self.desk.keys.items()), self.desk.projection.header.name

    def draw(self, width: int, height: int) -> list[Line]:
        return guide_lines(self.desk, width)


def log_lines(desk: Desk, width: int) -> list[Line]:
    """Newest first, so that nothing needs scrolling to."""
    p = desk.projection
    out: list[Line] = []
    for one in reversed(p.log):
        at = formats.clock(one.at_s - p.header.opened_at_s)
        style = words.LEVEL_STYLE.get(one.level, "")
        for i, part in enumerate(wrap(one.text, max(10, width - 9))):
            out.append([(f"{at} " if i == 0 else " " * 9, "faint"), (part, style)])
    return out or [[("nothing said yet", "muted")]]


class LogPane(Pane, can_focus=True):
    def state(self) -> tuple[object, ...]:
        log = self.desk.projection.log
        return self.desk.sessions, self.desk.themed, log[-1].seq if log else 0, len(log)

    def draw(self, width: int, height: int) -> list[Line]:
        return log_lines(self.desk, width)


class HelpScreen(WorkScreen):
    NAME = "help"
    CSS_PATH = ["workscreen.tcss", "help.tcss"]
    BINDINGS = bindings_of("help")

    def body(self) -> ComposeResult:
        with Horizontal(id="help-row"):
            yield boxed(GuidePane(self.desk, id="guide"), "Keys and concepts")
            yield boxed(LogPane(self.desk, id="log"), "Log, newest first")

    def on_mount(self) -> None:
        self.query_one(GuidePane).focus()
