"""Two sources against each other: reference, parent, exemplars, or any two."""

from __future__ import annotations

from msgspec import Struct
from textual.app import ComposeResult
from textual.worker import Worker, WorkerState

from workbench_screens import formats, words
from workbench_screens.actions import bindings
from workbench_screens.desk import Desk, highlight
from workbench_screens.dialogs import AskDialog
from workbench_screens.diffview import DiffView
from workbench_screens.lines import Line, joined, spread
from workbench_screens.pane import Pane
from workbench_screens.sidebyside import Comparison, compare
from workbench_screens.workscreen import WorkScreen
from workbench_sessions.errors import SessionError
from workbench_sessions.projection import Candidate

REFERENCE = "reference"
AGAINST = ("reference", "parent", "slow", "contrast")


class Side(Struct, frozen=True):
    """One source: its name, hash, and candidate (None for the task's reference)."""

    name: str
    sha: str
    candidate: str | None


def side(desk: Desk, name: str) -> Side | None:
    """By candidate id or "reference"; None when there is no such source at this instant."""
    p = desk.projection
    if name == REFERENCE:
        task = p.header.task
        return Side(REFERENCE, task.source_sha256, None) if task is not None else None
    candidate = p.candidates.get(name)
    return Side(name, candidate.source_sha256, name) if candidate is not None else None


def names_for(desk: Desk, against: str) -> tuple[str, str] | str:
    """Names of the two sides for a choice of `AGAINST`, or one line why there are none."""
    shown = desk.shown()
    if shown is None:
        return "there is no candidate yet"
    if against == "reference":
        return REFERENCE, shown.id
    if against == "parent":
        return (shown.parents[0], shown.id) if shown.parents else f"{shown.id} has no parent"
    exemplars = {exemplar.role: exemplar.candidate for exemplar in desk.details(shown).exemplars}
    if "slow" not in exemplars or (against == "contrast" and "fast" not in exemplars):
        return f"{shown.id} was proposed without exemplars"
    return (exemplars["slow"], exemplars["fast"]) if against == "contrast" else (exemplars["slow"], shown.id)


def time_of(desk: Desk, one: Side, other: Side) -> float | None:
    """Seconds a call: the candidate's own, the reference's as measured beside the other side."""
    p = desk.projection
    if one.candidate is not None:
        return p.candidates[one.candidate].candidate_s if one.candidate in p.candidates else None
    rival = p.candidates.get(other.candidate or "")
    return rival.reference_s if rival is not None else None


def title_lines(desk: Desk, left: Side, right: Side, word: str, where: str, width: int) -> list[Line]:
    """Names, both times and their ratio; then what the right one's verdict is and where one is in the diff."""
    a, b = time_of(desk, left, right), time_of(desk, right, left)
    arrow = desk.glyphs.arrow
    head: Line = [(" " + left.name, "bold"), (f" {arrow} ", "muted"), (right.name, "bold")]
    if a is not None and b is not None:
        ratio = formats.ratio(a / b) if b > 0 else formats.NOTHING
        # Only candidate against reference was measured in pairs; any other quotient is an estimate.
        rows = desk.projection.candidates
        honest = left.candidate is None and right.candidate is not None and words.claimed(rows[right.candidate])
        said = ratio if honest else f"({ratio})"
        head.append((f"   {formats.seconds(a)} {arrow} {formats.seconds(b)}   ", ""))
        head.append((said, "faster" if honest and a > b else "muted"))
    else:
        head.append(("   not both timed", "muted"))
    second: list[Line] = []
    for one in (left, right):
        candidate = desk.projection.candidates.get(one.candidate or "")
        if candidate is not None:
            second.append(_facts(desk, candidate))
    return [
        spread(head, [(word + " ", "accent")], width),
        spread([(" ", ""), *joined(second, "   ")], [(where + " ", "muted")], width),
    ]


def _facts(desk: Desk, candidate: Candidate) -> Line:
    text, style = words.verdict(candidate, desk.glyphs)
    number, number_style = words.speedup(candidate)
    return [(f"{candidate.id} ", "muted"), (text, style), (" ", ""), (number, number_style)]


class DiffTitle(Pane):
    def __init__(self, desk: Desk, owner: DiffScreen) -> None:
        super().__init__(desk, id="diff-title")
        self.owner = owner

    def state(self) -> tuple[object, ...]:
        return (*self.desk.state(), *self.owner.key(), self.owner.query_one(DiffView).place())

    def draw(self, width: int, height: int) -> list[Line]:
        owner = self.owner
        if owner.problem:
            return [[(" " + owner.problem, "slower")]]
        if owner.left is None or owner.right is None:
            return [[(" nothing to compare yet", "muted")]]
        view = owner.query_one(DiffView)
        word = "unified" if view.unified else "side by side"
        return title_lines(self.desk, owner.left, owner.right, f"{owner.against} · {word}", view.place(), width)


class Prepared(Struct, frozen=True):
    """What the thread made."""

    key: tuple[str, str]
    comparison: Comparison
    left: list[Line]
    right: list[Line]


class DiffScreen(WorkScreen):
    NAME = "diff"
    CSS_PATH = ["workscreen.tcss", "diff.tcss"]
    BINDINGS = bindings("diff")

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.against = AGAINST[0]
        self.left: Side | None = None
        self.right: Side | None = None
        self.problem = ""
        self._asked: tuple[str, str] | None = None

    def body(self) -> ComposeResult:
        yield DiffTitle(self.desk, self)
        yield DiffView(self.desk, id="diff-view")

    def on_mount(self) -> None:
        self.query_one(DiffView).focus()

    def key(self) -> tuple[object, ...]:
        return self.left, self.right, self.problem, self.against

    def tick(self) -> None:
        self._choose()
        super().tick()
        self.query_one(DiffView).pulse()

    def _choose(self) -> None:
        """Follows the desk: the chosen candidate, or the pair the person named."""
        names = self.desk.pair or names_for(self.desk, self.against)
        if isinstance(names, str):
            self.problem = names
            return
        left, right = side(self.desk, names[0]), side(self.desk, names[1])
        if left is None or right is None:
            missing = names[0] if left is None else names[1]
            self.problem = f"{missing} is not there at this instant"
            return
        self.problem, self.left, self.right = "", left, right
        asked = (left.sha, right.sha)
        if asked == self._asked:
            return
        try:
            texts = self.desk.feed.source(left.sha), self.desk.feed.source(right.sha)
        except (SessionError, KeyError) as error:
            self.problem = f"a source is not in the session: {error}"
            return
        self._asked = asked
        known = self.desk.coloured(left.sha), self.desk.coloured(right.sha)

        def prepare() -> Prepared:
            return Prepared(asked, compare(*texts), known[0] or highlight(texts[0]), known[1] or highlight(texts[1]))

        self.run_worker(prepare, name="diff", group="diff", exclusive=True, thread=True, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.worker.name != "diff":
            return
        if event.state is WorkerState.ERROR:
            self.problem = f"these two cannot be compared: {event.worker.error}"
        result = event.worker.result
        if event.state is not WorkerState.SUCCESS or not isinstance(result, Prepared) or result.key != self._asked:
            return
        self.desk.keep_coloured(result.key[0], result.left)
        self.desk.keep_coloured(result.key[1], result.right)
        self.query_one(DiffView).show(result.comparison, result.left, result.right)
        self.tick()

    def action_unified(self) -> None:
        self.query_one(DiffView).toggle()
        self.tick()

    def action_hunk(self, direction: int) -> None:
        if not self.query_one(DiffView).jump(direction):
            self.notify(f"no {'further' if direction > 0 else 'earlier'} change", markup=False)
        self.tick()

    def action_against(self) -> None:
        self.desk.pair = None
        self.against = AGAINST[(AGAINST.index(self.against) + 1) % len(AGAINST)]
        self.tick()

    def action_pick(self) -> None:
        def answered(text: str | None) -> None:
            if not text:
                return
            names = text.replace(",", " ").split()
            wrong = [name for name in names if side(self.desk, name) is None]
            if len(names) != 2 or wrong:
                said = f"{wrong[0]!r} is no candidate here" if wrong else "name exactly two"
                self.notify(f"{said}: e.g. reference {self._example()}", severity="error", markup=False)
                return
            self.desk.pair = (names[0], names[1])
            self.against = AGAINST[0]
            self.tick()

        self.app.push_screen(AskDialog("Compare any two", f"reference {self._example()}"), answered)

    def _example(self) -> str:
        shown = self.desk.shown()
        return shown.id if shown is not None else "c000001"
