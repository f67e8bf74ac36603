"""People: what they decided, said and asked for."""

from __future__ import annotations

from workbench_sessions.events.base import Event


class HumanAccepted(Event, frozen=True):
    candidate: str
    reason: str = ""
    path: str = ""
    person: str = ""


class HumanRejected(Event, frozen=True):
    candidate: str
    reason: str = ""
    person: str = ""


class DecisionUndone(Event, frozen=True):
    candidate: str
    person: str = ""


class CandidatePinned(Event, frozen=True):
    candidate: str
    pinned: bool


class ReviewRequested(Event, frozen=True):
    """Review mode: the candidate waits for a person before it can be a parent."""

    candidate: str


class SteeringGiven(Event, frozen=True):
    text: str
    replace: bool = False


class CommandRefused(Event, frozen=True):
    command: int
    reason: str
