"""Flag-only twins of everything a person can do on the screens: wishes left in the session file."""

from __future__ import annotations

import getpass
import hashlib
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from workbench.commands.common import SessionName, configuration, session_named
from workbench.engine_process import answer_commands
from workbench.errors import CommandFailed, UsageProblem
from workbench_sessions import commands as wish
from workbench_sessions.events import (
    Budget,
    BudgetChanged,
    CandidatePinned,
    CandidateProposed,
    CommandRefused,
    DecisionUndone,
    Event,
    HumanAccepted,
    HumanRejected,
    ModeChanged,
    PhaseChanged,
    SessionClosed,
    SteeringGiven,
)
from workbench_sessions.lock import engine_alive
from workbench_sessions.log import send_command
from workbench_sessions.reader import SessionReader

ANSWER_S = 5.0
Candidate = Annotated[str, typer.Argument(help="A candidate's id, such as c0012.")]
Reason = Annotated[str, typer.Option(help="Why; kept in the session.")]


def accept(session: SessionName, candidate: Candidate, reason: Reason = "") -> None:
    """Accept a candidate: its kernel is written to the output folder."""
    send(session, wish.Accept(candidate, reason, person()))


def reject(session: SessionName, candidate: Candidate, reason: Reason = "") -> None:
    """Reject a candidate: it is no parent and never the best."""
    send(session, wish.Reject(candidate, reason, person()))


def undo(session: SessionName, candidate: Candidate) -> None:
    """Take a decision about a candidate back."""
    send(session, wish.UndoDecision(candidate, person()))


def pin(
    session: SessionName,
    candidate: Candidate,
    off: Annotated[bool, typer.Option("--off", help="Unpin it.")] = False,
) -> None:
    """Keep a candidate in sight."""
    send(session, wish.Pin(candidate, not off))


def pause(session: SessionName) -> None:
    """Pause a run: nothing new is proposed."""
    send(session, wish.Pause())


def resume(session: SessionName) -> None:
    """Go on with a paused run (`run --resume` starts one that was cut off)."""
    send(session, wish.Resume())


def stop(session: SessionName, reason: Reason = "") -> None:
    """End a run; it can be resumed later."""
    send(session, wish.Stop(reason))


def budget(
    session: SessionName,
    minutes: Annotated[float | None, typer.Option(min=0, help="Of the whole run, in minutes.")] = None,
    evaluations: Annotated[int | None, typer.Option(min=0, help="Of the whole run.")] = None,
) -> None:
    """Change the caps of a run; one that is not given is lifted."""
    if minutes is None and evaluations is None:
        raise UsageProblem("budget: give --minutes, --evaluations or both")
    send(session, wish.SetBudget(Budget(evaluations=evaluations, seconds=None if minutes is None else minutes * 60.0)))


def mode(session: SessionName, which: Annotated[str, typer.Argument(help="auto or review")]) -> None:
    """Switch between auto and review."""
    match which:
        case "auto" | "review":
            send(session, wish.SetMode(which))
        case _:
            raise UsageProblem(f"mode {which!r} is unknown; known: auto, review")


def submit(
    session: SessionName,
    file: Annotated[Path, typer.Argument(help="A kernel (.cpp) or a module (.py).")],
    parent: Annotated[str | None, typer.Option(help="The candidate it was edited from.")] = None,
    note: Annotated[str, typer.Option(help="Kept with the candidate.")] = "",
) -> None:
    """Have your own candidate judged in a run."""
    send(session, wish.SubmitSource(read_candidate(file), kind_of_file(file), parent, person(), note))


def steer(
    session: SessionName,
    text: Annotated[str, typer.Argument(help="What the next proposals should heed.")],
    replace: Annotated[bool, typer.Option("--replace", help="Instead of what was said before.")] = False,
) -> None:
    """Tell the policy something."""
    send(session, wish.Steer(text, replace))


def person() -> str:
    """Who decides; "" when the system does not tell."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def kind_of_file(path: Path) -> str:
    """ "kernel" or "module" by the suffix. Raises UsageProblem."""
    kinds = {".cpp": "kernel", ".cc": "kernel", ".cxx": "kernel", ".py": "module"}
    if path.suffix not in kinds:
        raise UsageProblem(f"{path}: a candidate is a kernel (.cpp) or a module (.py)")
    return kinds[path.suffix]


def read_candidate(path: Path) -> str:
    """The text of a candidate's file. Raises UsageProblem."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path}: cannot be read ({error})") from None


def send(session: str, command: wish.Command) -> None:
    """Leaves a wish and waits for the answer; without an engine one is started that only answers.

    Raises CommandFailed with the reason when it is refused.
    """
    path = session_named(session, configuration()[1])
    with SessionReader(path) as reader:
        before = reader.head_seq()
        alive = engine_alive(path)
        number = send_command(path, command)
        if not alive:
            answer_commands(path)
        said = _answer(reader, before, number, command, ANSWER_S if alive else 0.0)
    if said is None:
        print("left for the engine, which has not answered yet", file=sys.stderr)
    elif isinstance(said, CommandRefused):
        raise CommandFailed(said.reason)
    elif isinstance(said, HumanAccepted):
        print(said.path)
    elif isinstance(said, CandidateProposed):
        print(said.candidate)


def _answer(reader: SessionReader, after: int, number: int, command: wish.Command, patience_s: float) -> Event | None:
    """The event that grants or refuses the wish; None when the engine stays silent for `patience_s`."""
    deadline_s = time.monotonic() + patience_s
    while True:
        for one in reader.events(after, 5000):
            after = one.seq
            if (isinstance(one.event, CommandRefused) and one.event.command == number) or grants(command, one.event):
                return one.event
        if time.monotonic() >= deadline_s:
            return None
        time.sleep(0.05)


def grants(command: wish.Command, event: Event) -> bool:
    """Whether `event` is the fact that `command` asked for."""
    match command, event:
        case wish.Accept(candidate=wanted), HumanAccepted(candidate=got):
            return wanted == got
        case wish.Reject(candidate=wanted), HumanRejected(candidate=got):
            return wanted == got
        case wish.UndoDecision(candidate=wanted), DecisionUndone(candidate=got):
            return wanted == got
        case wish.Pin(candidate=wanted, pinned=pinned), CandidatePinned(candidate=got):
            return wanted == got and pinned == event.pinned
        case wish.Pause(), PhaseChanged(phase="paused"):
            return True
        case wish.Resume(), PhaseChanged(phase="running"):
            return True
        case wish.Stop(), PhaseChanged(phase="stopping") | SessionClosed():
            return True
        case wish.SetBudget(budget=wanted_budget), BudgetChanged(budget=new):
            return wanted_budget == new
        case wish.SetMode(mode=wanted_mode), ModeChanged(mode=new_mode):
            return wanted_mode == new_mode
        case wish.SubmitSource(source=text), CandidateProposed(source_sha256=sha256):
            return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() == sha256
        case wish.Steer(text=said), SteeringGiven(text=heard):
            return said == heard
    return False
