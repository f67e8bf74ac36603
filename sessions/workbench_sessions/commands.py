"""What a person wants: wishes written by any viewer or the command line, read by the engine.

A command is never a fact; the engine answers each with an event (or `CommandRefused`).
"""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec import Struct

from workbench_sessions.events import Budget, Mode


class Command(Struct, frozen=True, tag=True):
    """Base of all wishes. `person` signs decisions in the session."""


class Accept(Command, frozen=True):
    candidate: str
    reason: str = ""
    person: str = ""


class Reject(Command, frozen=True):
    candidate: str
    reason: str = ""
    person: str = ""


class UndoDecision(Command, frozen=True):
    candidate: str
    person: str = ""


class Pin(Command, frozen=True):
    candidate: str
    pinned: bool = True


class Pause(Command, frozen=True):
    pass


class Resume(Command, frozen=True):
    pass


class Stop(Command, frozen=True):
    reason: str = ""


class SetBudget(Command, frozen=True):
    budget: Budget


class SetMode(Command, frozen=True):
    mode: Mode


class SubmitSource(Command, frozen=True):
    """A person's candidate: the whole text of a kernel (`.cpp`) or module (`.py`) file, edited from `parent`."""

    source: str
    kind: str = "kernel"
    parent: str | None = None
    person: str = ""
    note: str = ""


class Steer(Command, frozen=True):
    text: str
    replace: bool = False


class AnswerPrompt(Command, frozen=True):
    """A person's answer to a prompt of policy `manual`, as a model would give it: prose and code, or code alone."""

    prompt: str
    text: str
    person: str = ""


class UnreadableCommand(Command, frozen=True):
    """A row that is no command of this version: handed to the engine so that it can refuse it by its id."""

    kind: str
    body: str
    problem: str


AnyCommand = (
    Accept
    | Reject
    | UndoDecision
    | Pin
    | Pause
    | Resume
    | Stop
    | SetBudget
    | SetMode
    | SubmitSource
    | Steer
    | AnswerPrompt
)


class CommandPort(Protocol):
    """How a screen speaks: fire and forget; the answer comes back as an event."""

    def send(self, command: Command) -> None: ...


def encode_command(command: Command) -> tuple[str, str]:
    """(kind, JSON body) of a command row."""
    return type(command).__name__, msgspec.json.encode(command).decode()


def decode_command(body: str | bytes) -> Command:
    """Raises `msgspec.DecodeError` when the body is no command of this version."""
    return msgspec.json.decode(body, type=AnyCommand)
