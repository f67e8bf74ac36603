"""Questions to the person: each is a typed modal screen; what comes back is a value, None when it was left."""

from __future__ import annotations

from msgspec import Struct
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from workbench_screens import formats
from workbench_sessions.events import Budget

CSS = """
Vertical.question { width: 64; max-width: 96%; height: auto; max-height: 90%; border: round $accent; padding: 0 1;
    background: $surface; }
.question OptionList { height: auto; max-height: 12; border: none; background: transparent; padding: 0; }
.question Input { border: none; height: 1; padding: 0; margin: 1 0; background: $panel; }
.question .fact { height: auto; color: $text-muted; }
.question .wrong { height: auto; color: $error; }
"""


class Decision(Struct, frozen=True):
    """A person's answer on one candidate."""

    accept: bool
    reason: str


ACCEPT_REASONS = ("fast and readable", "fastest so far", "good base for more", "safe and simple")
REJECT_REASONS = (
    "hard to maintain",
    "too close to the noise floor",
    "looks like a trick",
    "wrong precision for us",
    "depends on this machine",
)


class DecisionDialog(ModalScreen[Decision | None]):
    """Accept or reject with a reason: a quick one from the list, or one's own words. Enter decides, esc leaves."""

    DEFAULT_CSS = "DecisionDialog { align: center middle; }" + CSS
    BINDINGS = [("escape", "dismiss", "Leave")]

    def __init__(self, candidate: str, accept: bool, facts: list[str]) -> None:
        super().__init__()
        self.candidate, self.accept, self.facts = candidate, accept, facts

    def compose(self) -> ComposeResult:
        reasons = ACCEPT_REASONS if self.accept else REJECT_REASONS
        with Vertical(classes="question") as box:
            box.border_title = f"{'Accept' if self.accept else 'Reject'} {self.candidate}"
            box.border_subtitle = "enter decides, tab moves, esc leaves"
            for fact in self.facts:
                yield Static(Content(fact), classes="fact")
            yield Input(placeholder="reason in your own words (may stay empty)", id="reason")
            yield OptionList(*(Option(Content(reason)) for reason in reasons), id="reasons")

    def on_mount(self) -> None:
        self.query_one("#reason", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(Decision(self.accept, event.value.strip()))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        reasons = ACCEPT_REASONS if self.accept else REJECT_REASONS
        own = self.query_one("#reason", Input).value.strip()
        reason = reasons[event.option_index]
        self.dismiss(Decision(self.accept, f"{reason}; {own}" if own else reason))

    def key_down(self) -> None:
        self.query_one("#reasons", OptionList).focus()


class ConfirmDialog(ModalScreen[bool]):
    """A yes or no for what cannot be taken back. Enter is no: yes must be pressed."""

    DEFAULT_CSS = "ConfirmDialog { align: center middle; }" + CSS
    BINDINGS = [("y", "yes", "Yes"), ("n,escape,enter", "no", "No")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.heading, self.text = title, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="question") as box:
            box.border_title = self.heading
            box.border_subtitle = "y yes   n, enter, esc no"
            yield Static(Content(self.text))

    def action_yes(self) -> None:
        self.dismiss(True)

    def action_no(self) -> None:
        self.dismiss(False)


class AskDialog(ModalScreen[str | None]):
    """One line of text."""

    DEFAULT_CSS = "AskDialog { align: center middle; }" + CSS
    BINDINGS = [("escape", "dismiss", "Leave")]

    def __init__(self, title: str, hint: str, value: str = "", facts: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.heading, self.hint, self.value, self.facts = title, hint, value, facts

    def compose(self) -> ComposeResult:
        with Vertical(classes="question") as box:
            box.border_title = self.heading
            box.border_subtitle = "enter takes it, esc leaves"
            for fact in self.facts:
                yield Static(Content(fact), classes="fact")
            yield Input(self.value, placeholder=self.hint, id="answer")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class BudgetError(ValueError):
    """A cap that is no number; `str()` says which and what would do."""


def parse_budget(evaluations: str, time: str, tokens: str, money: str) -> Budget:
    """Caps from four fields; an empty one means no cap. Raises `BudgetError`."""
    return Budget(
        evaluations=_whole("evaluations", evaluations),
        seconds=_span(time),
        tokens=_whole("tokens", tokens),
        money=_money(money),
    )


def _whole(name: str, text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise BudgetError(f"{name}: {text!r} is no whole number above 0; leave it empty for no cap")
    return int(text)


def _span(text: str) -> float | None:
    text = text.strip()
    if not text:
        return None
    value = float(text) if text.isdecimal() else formats.parse_clock(text)
    if not value:
        raise BudgetError(f"time: {text!r} is no time; write seconds (600) or 1:30:00, or leave it empty for no cap")
    return value


def _money(text: str) -> float | None:
    text = text.strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise BudgetError(f"money: {text!r} is no amount above 0; leave it empty for no cap")
    return value


class BudgetDialog(ModalScreen[Budget | None]):
    """The caps of the run. Empty means no cap."""

    DEFAULT_CSS = "BudgetDialog { align: center middle; } BudgetDialog .question Input { margin: 0 0 0 0; }" + CSS
    BINDINGS = [("escape", "dismiss", "Leave"), ("ctrl+s", "take", "Take")]

    def __init__(self, budget: Budget, spent: str) -> None:
        super().__init__()
        self.budget, self.spent = budget, spent

    def compose(self) -> ComposeResult:
        b = self.budget
        fields = (
            ("evaluations", "evaluations", "" if b.evaluations is None else str(b.evaluations)),
            ("time", "time: seconds or h:mm:ss", "" if b.seconds is None else formats.clock(b.seconds)),
            ("tokens", "tokens", "" if b.tokens is None else str(b.tokens)),
            ("money", "money", "" if b.money is None else f"{b.money:g}"),
        )
        with Vertical(classes="question") as box:
            box.border_title = "Budget"
            box.border_subtitle = "enter takes all, tab moves, esc leaves; empty = no cap"
            yield Static(Content(f"spent: {self.spent}"), classes="fact")
            for name, label, value in fields:
                yield Static(Content(label), classes="fact")
                yield Input(value, placeholder="no cap", id=name)
            yield Static(Content(""), classes="wrong", id="wrong")

    def on_mount(self) -> None:
        self.query_one("#evaluations", Input).focus()

    def on_input_submitted(self) -> None:
        self.action_take()

    def action_take(self) -> None:
        values = [self.query_one(f"#{name}", Input).value for name in ("evaluations", "time", "tokens", "money")]
        try:
            self.dismiss(parse_budget(*values))
        except BudgetError as error:
            self.query_one("#wrong", Static).update(Content(str(error)))
