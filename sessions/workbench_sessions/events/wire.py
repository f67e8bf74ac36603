"""The one registry: from a fact to its row and back."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from workbench_sessions.events import decisions, llm, measuring, search, session
from workbench_sessions.events.base import Event

_SUBJECTS = (session, search, measuring, llm, decisions)


class UnknownEvent(Event, frozen=True):
    """A kind this version does not know: kept, shown, never an error."""

    kind: str
    body: str


def _kinds() -> dict[str, type[Event]]:
    found = [cls for subject in _SUBJECTS for cls in vars(subject).values() if isinstance(cls, type)]
    return {cls.__name__: cls for cls in found if issubclass(cls, Event) and cls is not Event}


KINDS: dict[str, type[Event]] = _kinds()
"""Every fact by the name in the `kind` column: that of its class, wherever it is defined."""
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {}
_ENCODER = msgspec.json.Encoder()


def kind_of(event: Event) -> str:
    """The name stored in the `kind` column."""
    return event.kind if isinstance(event, UnknownEvent) else type(event).__name__


def encode(event: Event) -> str:
    """JSON body of an event. Characters that UTF-8 cannot carry (undecodable bytes of a log) become "?"."""
    if isinstance(event, UnknownEvent):
        return event.body
    try:
        return _ENCODER.encode(event).decode()
    except UnicodeEncodeError:
        return _ENCODER.encode(_writable(msgspec.to_builtins(event))).decode()


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_writable(one) for one in value]
    if isinstance(value, dict):
        return {_writable(key): _writable(one) for key, one in value.items()}
    return value


def decode(kind: str, body: str | bytes) -> Event:
    """The event of one row. An unknown or unreadable one comes back as `UnknownEvent`, never as an exception."""
    cls = KINDS.get(kind)
    if cls is not None:
        decoder = _DECODERS.get(kind)
        if decoder is None:
            decoder = _DECODERS[kind] = msgspec.json.Decoder(cls)
        try:
            return decoder.decode(body)  # type: ignore[no-any-return]
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    return UnknownEvent(kind=kind, body=text)


class Stamped(Struct, frozen=True):
    """An event in its place: `seq` orders, `at_s` (unix seconds) is for people, `mono_s` measures."""

    seq: int
    at_s: float
    mono_s: float
    event: Event
