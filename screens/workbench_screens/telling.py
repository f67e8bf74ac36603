"""What a person tells the policy: steering in words, and answers to prompts by hand."""

from __future__ import annotations

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static, TextArea

from workbench_screens.dialogs import CSS
from workbench_screens.lines import safe


class Steering(Struct, frozen=True):
    """Words for the next prompts: added to what they carry, or in its place (empty: nothing is carried any more)."""

    text: str
    replace: bool


class SteerDialog(ModalScreen[Steering | None]):
    """One line of steering. Enter adds it, ctrl+r puts it in place of all, ctrl+x drops all."""

    DEFAULT_CSS = "SteerDialog { align: center middle; }" + CSS
    BINDINGS = [
        Binding("escape", "dismiss", "Leave"),
        Binding("ctrl+r", "put(True)", "Replace", priority=True),
        Binding("ctrl+x", "drop", "Drop all", priority=True),
    ]

    def __init__(self, carried: str, reasons: list[str]) -> None:
        super().__init__()
        self.carried, self.reasons = carried, reasons

    def compose(self) -> ComposeResult:
        with Vertical(classes="question") as box:
            box.border_title = "Steer the policy"
            box.border_subtitle = "enter adds, ctrl+r replaces, ctrl+x drops all, esc leaves"
            lines = self.carried.splitlines()
            yield Static(
                Content("the next prompts carry:" if lines else "the next prompts carry nothing yet"), classes="fact"
            )
            for line in lines[-8:]:
                yield Static(Content(f"  {safe(line)}"))
            for reason in self.reasons:
                yield Static(Content(f"  {safe(reason)}"), classes="fact")
            yield Input(placeholder="e.g. try online softmax with wider vectors", id="answer")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self) -> None:
        self.action_put(False)

    def action_put(self, replace: bool) -> None:
        text = self.query_one(Input).value.strip()
        self.dismiss(Steering(text, replace) if text else None)

    def action_drop(self) -> None:
        self.dismiss(Steering("", True) if self.carried else None)


class Draft(Struct, frozen=True):
    """An answer as it was left; `send` False keeps it for later."""

    text: str
    send: bool


class AnswerDialog(ModalScreen[Draft]):
    """A prompt answered by hand. Ctrl+s sends, esc keeps the draft."""

    DEFAULT_CSS = """
    AnswerDialog { align: center middle; }
    AnswerDialog .paper { width: 94%; max-width: 140; height: 92%; border: round $accent; background: $surface; }
    AnswerDialog TextArea { height: 1fr; border: none; }
    AnswerDialog .fact { height: auto; color: $text-muted; padding: 0 1; }
    """
    BINDINGS = [
        Binding("escape", "leave", "Keep the draft", priority=True),
        Binding("ctrl+s", "send", "Send", priority=True),
    ]

    def __init__(self, prompt: str, draft: str) -> None:
        super().__init__()
        self.prompt, self.draft = prompt, draft

    def compose(self) -> ComposeResult:
        with Vertical(classes="paper") as box:
            box.border_title = f"Answer {self.prompt}"
            box.border_subtitle = "ctrl+s sends, esc keeps the draft"
            said = "As a model would: performance analysis, algorithm design, code in a block; or the file alone."
            yield Static(Content(said), classes="fact")
            yield TextArea(self.draft, show_line_numbers=True, tab_behavior="indent")

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()

    def action_send(self) -> None:
        text = self.query_one(TextArea).text
        if text.strip():
            self.dismiss(Draft(text, True))
        else:
            self.notify("the answer is empty", severity="warning")

    def action_leave(self) -> None:
        self.dismiss(Draft(self.query_one(TextArea).text, False))
