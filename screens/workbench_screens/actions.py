"""The one table of actions: bindings, footer, palette, generated help and the user's keymap all come from here."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from textual.binding import Binding, BindingType

from workbench_screens.desk import Desk

EVERYWHERE = "app"


def _live(desk: Desk) -> str | None:
    if not desk.feed.live:
        return "this is a replay: decisions are off; press L to go live"
    return None


def _engine(desk: Desk) -> str | None:
    if desk.feed.engine_alive:
        return None
    return f"no engine runs this session; `workbench run --resume {desk.projection.header.name}` starts one"


def _candidate(desk: Desk) -> str | None:
    return None if desk.shown() is not None else "there is no candidate yet"


def _judged(desk: Desk) -> str | None:
    shown = desk.shown()
    if shown is not None and shown.verdict is None:
        return f"{shown.id} has no verdict yet"
    return None


def _decided(desk: Desk) -> str | None:
    shown = desk.shown()
    if shown is not None and shown.decision not in ("accepted", "rejected"):
        return f"there is no decision on {shown.id} to undo"
    return None


def _prompted(desk: Desk) -> str | None:
    shown = desk.shown()
    if shown is not None and shown.origin.prompt not in desk.projection.requests:
        return f"{shown.id} did not come of a prompt"
    return None


def _by_hand(desk: Desk) -> str | None:
    opened = desk.opened()
    if desk.projection.header.policy != "manual":
        return "only the prompts of policy manual are answered by hand"
    if opened is None or opened.state != "waiting":
        return f"{opened.prompt} does not wait for an answer" if opened is not None else "there is no prompt yet"
    return None


NEEDS: dict[str, Callable[[Desk], str | None]] = {
    "live": _live,
    "engine": _engine,
    "candidate": _candidate,
    "judged": _judged,
    "decided": _decided,
    "prompted": _prompted,
    "by_hand": _by_hand,
}
"""Each says in one line why not, or None."""


class Act(Struct, frozen=True):
    """One action. `where` is the screen that owns it, or everywhere; `shown` puts it into the footer."""

    id: str
    key: str
    label: str
    tip: str
    group: str
    where: str = EVERYWHERE
    needs: tuple[str, ...] = ()
    shown: bool = False
    do: str = ""

    @property
    def action(self) -> str:
        return self.do or self.id

    def refusal(self, desk: Desk) -> str | None:
        """Why it cannot be done now, in one line; None when it can."""
        return next((reason for need in self.needs if (reason := NEEDS[need](desk)) is not None), None)


_DECIDE = ("live", "engine")

ACTIONS: tuple[Act, ...] = (
    Act("show_population", "1", "Population", "All candidates and the shown one", "Screens", do="show('population')"),
    Act("show_rewards", "2", "Rewards", "Curves of the search and the policy", "Screens", do="show('rewards')"),
    Act("show_devices", "3", "Devices", "What each device does and times", "Screens", do="show('devices')"),
    Act("show_diff", "4", "Diff", "Two sources side by side", "Screens", do="show('diff')"),
    Act("show_lineage", "5", "Lineage", "Who came from whom, by island", "Screens", do="show('lineage')"),
    Act("show_sessions", "6", "Sessions", "Open, compare and delete sessions", "Screens", do="show('sessions')"),
    Act("show_help", "7", "Help & log", "Keys, concepts and the log", "Screens", do="show('help')"),
    Act("show_transcript", "8", "Transcript", "Prompts and answers of the models", "Screens",
        do="show('transcript')"),
    Act("accept", "a", "Accept", "Accept the candidate, with a reason: its kernel is written to the output folder",
        "Decisions", needs=(*_DECIDE, "candidate", "judged"), shown=True),
    Act("reject", "r", "Reject", "Reject the candidate, with a reason: it is no parent and never best",
        "Decisions", needs=(*_DECIDE, "candidate", "judged"), shown=True),
    Act("undo", "u", "Undo", "Take the decision on the candidate back", "Decisions",
        needs=(*_DECIDE, "candidate", "decided")),
    Act("pin", "p", "Pin", "Pin or unpin the candidate", "Decisions", needs=(*_DECIDE, "candidate"), shown=True),
    Act("edit", "e", "Edit", "Edit the source in your editor; each save is evaluated as your candidate", "Decisions",
        needs=(*_DECIDE, "candidate"), shown=True),
    Act("steer", "s", "Steer", "Tell the policy something in words: added to what it carries, or in its place", "Run",
        needs=_DECIDE),
    Act("mode", "m", "Auto/review", "In review mode candidates wait for you before they can be parents", "Run",
        needs=_DECIDE),
    Act("budget", "b", "Budget", "Change the caps of this run", "Run", needs=_DECIDE),
    Act("stop", "x", "Stop", "Stop the run (asks first)", "Run", needs=_DECIDE),
    Act("diff", "d", "Diff", "The shown candidate against the reference", "Look", needs=("candidate",), shown=True),
    Act("transcript", "t", "Transcript", "The prompt and the answer that the shown candidate came of", "Look",
        needs=("candidate", "prompted")),
    Act("pause", "space", "Pause/play", "Live: pause or resume the engine. Replay: play or pause", "Time", shown=True),
    Act("back", "left_square_bracket", "Step back", "One event back (ten with ctrl+left)", "Time", do="step(-1)"),
    Act("forward", "right_square_bracket", "Step on", "One event on", "Time", do="step(1)"),
    Act("mark_back", "left_curly_bracket", "Mark back", "To the previous mark", "Time", do="mark(-1)"),
    Act("mark_on", "right_curly_bracket", "Mark on", "To the next mark", "Time", do="mark(1)"),
    Act("next_best", "asterisk", "Next best", "To the next new best", "Time", do="mark(1, 'best')"),
    Act("faster", "plus", "Faster", "Play twice as fast", "Time", do="speed(2.0)"),
    Act("slower", "minus", "Slower", "Play half as fast", "Time", do="speed(0.5)"),
    Act("start", "0", "Start", "To the first event", "Time", do="edge(-1)"),
    Act("goto", "g", "Go to", "Go to a time (1:30), an event (#1200) or a candidate", "Time", shown=True),
    Act("live", "L", "Live", "Back to now", "Time", do="go_live"),
    Act("filter", "slash", "Filter", "Filter the candidates: verdict:faster island:2 speedup>1.5 text", "Look",
        where="population", do="screen.filter", shown=True),
    Act("sort", "o", "Sort", "Sort by the next column", "Look", where="population", do="screen.sort"),
    Act("sort_reverse", "O", "Reverse", "Turn the order around", "Look", where="population", do="screen.reverse"),
    Act("review_queue", "v", "Review queue", "Only what waits for you, or all again", "Look", where="population",
        do="screen.review_queue", shown=True),
    Act("detail", "enter", "Detail", "The candidate at full size", "Look", where="population", do="screen.detail"),
    Act("loosen", "escape", "Let go", "Drop the filter, then the cursor: the detail follows the best again", "Look",
        where="population", do="screen.loosen"),
    Act("axis", "v", "X axis", "Evaluations, steps, time, or cost", "Look", where="rewards", do="screen.axis",
        shown=True),
    Act("smooth_more", "full_stop", "Smoother", "More smoothing", "Look", where="rewards", do="screen.smooth(1)",
        shown=True),
    Act("smooth_less", "comma", "Rougher", "Less smoothing", "Look", where="rewards", do="screen.smooth(-1)"),
    Act("cursor_left", "left", "Cursor back", "Read the curves one point earlier", "Look", where="rewards",
        do="screen.cursor(-1)"),
    Act("cursor_right", "right", "Cursor on", "Read the curves one point later", "Look", where="rewards",
        do="screen.cursor(1)"),
    Act("cursor_seek", "enter", "Go there", "Replay from the instant under the cursor", "Time", where="rewards",
        do="screen.seek", shown=True),
    Act("cursor_off", "escape", "Let go", "Drop the cursor", "Look", where="rewards", do="screen.loosen"),
    Act("window_more", "z", "Longer", "Lanes over more minutes", "Look", where="devices", do="screen.window(2.0)",
        shown=True),
    Act("window_less", "Z", "Shorter", "Lanes over fewer minutes", "Look", where="devices", do="screen.window(0.5)"),
    Act("current", "c", "Current/chosen", "Pairs of what is timed now, or of the chosen candidate", "Look",
        where="devices", do="screen.current", shown=True),
    Act("unified", "t", "Split/unified", "One column or two", "Look", where="diff", do="screen.unified", shown=True),
    Act("hunk_next", "n", "Next hunk", "To the next change", "Look", where="diff", do="screen.hunk(1)", shown=True),
    Act("hunk_back", "N", "Hunk back", "To the previous change", "Look", where="diff", do="screen.hunk(-1)"),
    Act("against", "c", "Against", "Against the reference, the parent, the slow exemplar, slow │ fast", "Look",
        where="diff", do="screen.against", shown=True),
    Act("pick", "slash", "Pick two", "Any two: type two ids, or `reference`", "Look", where="diff",
        do="screen.pick", shown=True),
    Act("read", "enter", "Read", "The opened prompt gets the keys: tab goes from link to link, enter folds or follows",
        "Look", where="transcript", do="screen.read", shown=True),
    Act("look", "slash", "Filter/search", "In the list: model:coder is:open verdict:faster cost>0.01 text:tile. In a "
        "prompt: look for a text", "Look", where="transcript", do="screen.look", shown=True),
    Act("hit_next", "n", "Next match", "To the next match in this prompt", "Look", where="transcript",
        do="screen.hit(1)", shown=True),
    Act("hit_back", "N", "Match back", "To the previous match", "Look", where="transcript", do="screen.hit(-1)"),
    Act("came_of", "c", "Candidate", "The candidate that came of this prompt, on the Population", "Look",
        where="transcript", do="screen.candidate", shown=True),
    Act("answer", "A", "Answer", "Answer the prompt by hand (policy manual)", "Decisions", where="transcript",
        needs=(*_DECIDE, "by_hand"), do="app.answer", shown=True),
    Act("unread", "escape", "Let go", "Leave the search, the prompt, the filter, then the cursor", "Look",
        where="transcript", do="screen.loosen"),
    Act("open", "enter", "Open", "Open the session", "Look", where="sessions", do="screen.open", shown=True),
    Act("delete", "D", "Delete", "Delete the session's file (asks first)", "Decisions", where="sessions",
        do="screen.delete", shown=True),
    Act("export", "E", "Export", "How to export this session", "Look", where="sessions", do="screen.export",
        shown=True),
    Act("reload", "R", "Reload", "Read the list again", "Look", where="sessions", do="screen.reload"),
    Act("help", "f1,question_mark", "Help", "Keys and concepts", "Screens", do="show('help')", shown=True),
    Act("quit", "q", "Quit", "Leave; a running engine goes on, `workbench attach` comes back", "Screens"),
)  # fmt: skip
BY_ID = {act.id: act for act in ACTIONS}
GROUPS = ("Screens", "Decisions", "Run", "Look", "Time")


def bindings(where: str = EVERYWHERE) -> list[BindingType]:
    """Textual bindings of one owner: the app's or a screen's."""
    return [
        Binding(act.key, act.action, act.label, id=act.id, tooltip=act.tip, show=act.shown)
        for act in ACTIONS
        if act.where == where
    ]


def on_screen(name: str) -> list[Act]:
    """What can be done on a screen: its own actions first."""
    return [act for act in ACTIONS if act.where == name] + [act for act in ACTIONS if act.where == EVERYWHERE]


_KEY_WORDS = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "asterisk": "*",
    "plus": "+",
    "minus": "-",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "question_mark": "?",
    "f1": "F1",
    "escape": "esc",
}


def key_text(act: Act, keys: dict[str, str]) -> str:
    """The key as printed on a keyboard, the person's own one first."""
    parts = keys.get(act.id, act.key).split(",")
    return " ".join(_KEY_WORDS.get(part, part) for part in parts)


def check_keymap(keymap: dict[str, str]) -> list[str]:
    """One line for each entry that names no action or takes another's key on the same screen."""
    problems = [f"keymap: no action {name!r}" for name in keymap if name not in BY_ID]
    taken: dict[tuple[str, str], str] = {}
    for act in ACTIONS:
        for key in keymap.get(act.id, act.key).split(","):
            other = taken.setdefault((act.where, key), act.id)
            if other != act.id:
                problems.append(f"keymap: {key!r} is both {other} and {act.id}")
    return problems
