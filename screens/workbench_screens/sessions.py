"""All sessions there are: open, delete, export."""

from __future__ import annotations

from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.worker import Worker, WorkerState

from workbench_screens import formats
from workbench_screens.actions import bindings
from workbench_screens.desk import DeleteSession, Desk, SessionsProvider
from workbench_screens.dialogs import ConfirmDialog
from workbench_screens.lines import Line, fit
from workbench_screens.pane import Pane
from workbench_screens.workscreen import WorkScreen
from workbench_sessions.errors import SessionError
from workbench_sessions.store import SessionSummary

TITLES = (
    ("name", 26),
    ("task", 18),
    ("policy", 14),
    ("state", 12),
    ("best", 9),
    ("evals", 7),
    ("when", 17),
    ("size", 9),
)


def state_word(row: SessionSummary) -> tuple[str, str]:
    """One word for where a session stands, and its style."""
    if row.error:
        return "unreadable", "rejected"
    if row.engine_alive:
        return row.phase or "running", "faster"
    if row.interrupted:
        return "interrupted", "slower"
    return row.outcome or "closed", "muted"


def best_text(row: SessionSummary) -> str:
    """Unconfirmed numbers stand in parentheses, as everywhere."""
    if row.best_speedup is None:
        return formats.NOTHING
    text = formats.ratio(row.best_speedup)
    return text if row.best_confirmed else f"({text})"


def session_line(row: SessionSummary, chosen: bool) -> Line:
    word, style = state_word(row)
    cells = (row.name, row.task, row.policy, word, best_text(row), str(row.evaluations), formats.when(row.at_s),
             formats.bytes_(row.size_bytes))  # fmt: skip
    out: Line = []
    for text, (name, width) in zip(cells, TITLES, strict=True):
        own = style if name == "state" else "bold" if name == "name" else ""
        out.append((fit(text, width) + " ", f"{own} cursor".strip() if chosen else own))
    return out


def title_line() -> Line:
    return [("".join(fit(name, width) + " " for name, width in TITLES), "muted bold")]


class SessionsList(Pane, can_focus=True):
    BINDINGS = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
    ]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="sessions-list")
        self.rows: list[SessionSummary] = []
        self.at = 0
        self.said = "reading…"

    @property
    def chosen(self) -> SessionSummary | None:
        return self.rows[self.at] if 0 <= self.at < len(self.rows) else None

    def state(self) -> tuple[object, ...]:
        return self.desk.themed, tuple(self.rows), self.at, self.said

    def draw(self, width: int, height: int) -> list[Line]:
        if not self.rows:
            return [[(" " + self.said, "muted")]]
        return [title_line(), *(session_line(row, i == self.at) for i, row in enumerate(self.rows))]

    def action_move(self, by: int) -> None:
        self.at = min(max(0, len(self.rows) - 1), max(0, self.at + by))
        height = self.scrollable_content_region.height
        if self.at + 1 >= self.scroll_offset.y + height or self.at < self.scroll_offset.y:
            self.scroll_to(y=max(0, self.at - height // 2), animate=False)
        self.screen.query_one(SessionFact).pulse()
        self.pulse()


class SessionFact(Pane):
    """The chosen session in words."""

    def state(self) -> tuple[object, ...]:
        return self.desk.themed, self.screen.query_one(SessionsList).chosen

    def draw(self, width: int, height: int) -> list[Line]:
        row = self.screen.query_one(SessionsList).chosen
        if row is None:
            return [[]]
        if row.error:
            return [[(" " + row.error, "rejected")]]
        said = f" {row.title or row.task}: {row.candidates} candidates, {row.accepted} accepted, {row.backend}"
        return [[(said, "")], [(f" {row.path}", "muted")]]


class SessionsScreen(WorkScreen):
    NAME = "sessions"
    CSS_PATH = ["workscreen.tcss", "sessions.tcss"]
    BINDINGS = bindings("sessions")

    def __init__(self, desk: Desk, provider: SessionsProvider | None, delete: DeleteSession | None) -> None:
        super().__init__(desk)
        self.provider, self.delete_session = provider, delete

    def body(self) -> ComposeResult:
        yield SessionsList(self.desk)
        yield SessionFact(self.desk, id="sessions-fact")

    def on_mount(self) -> None:
        self.query_one(SessionsList).focus()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self.action_reload()

    def action_reload(self) -> None:
        """Reads the folder in a thread: a hundred files take a while."""
        provider = self.provider
        if provider is None:
            self.query_one(SessionsList).said = "no folder of sessions was given"
            return
        self.run_worker(provider, name="sessions", exclusive=True, thread=True, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.worker.name != "sessions":
            return
        rows = self.query_one(SessionsList)
        if event.state is WorkerState.ERROR:
            rows.said = f"the folder cannot be read: {event.worker.error}"
        elif event.state is WorkerState.SUCCESS and isinstance(event.worker.result, list):
            rows.rows = event.worker.result
            rows.said = "no sessions yet: `workbench run TASK` makes one"
            rows.at = min(rows.at, max(0, len(rows.rows) - 1))
        self.tick()

    async def action_open(self) -> None:
        row = self.query_one(SessionsList).chosen
        if row is None:
            return
        if row.error:
            self.notify(row.error, severity="error", markup=False)
            return
        opener = getattr(self.app, "open_path", None)
        if opener is not None:
            await opener(Path(row.path))

    def action_delete(self) -> None:
        row = self.query_one(SessionsList).chosen
        delete = self.delete_session
        if row is None or delete is None:
            self.notify("delete it with `workbench sessions delete NAME`", markup=False)
            return

        def answered(yes: bool | None) -> None:
            if not yes:
                return
            try:
                delete(Path(row.path))
            except (SessionError, OSError) as error:
                self.notify(str(error), title="Not deleted", severity="error", markup=False)
            self.action_reload()

        text = f"{row.name}: {row.candidates} candidates, {formats.bytes_(row.size_bytes)}. This cannot be undone."
        self.app.push_screen(ConfirmDialog("Delete the session?", text), answered)

    def action_export(self) -> None:
        row = self.query_one(SessionsList).chosen
        if row is not None:
            self.notify(f"workbench sessions export {row.name} --output FILE", title="Export", markup=False)
