"""LLM traffic kept by the content of the request, and answered from what was kept, without a network.

A run keeps its traffic in its own session file (`ExchangeRecorded`), everything else in a file of JSON lines; both can
be replayed. Matching does not depend on the order of requests. Equal requests get their answers in the order in which
these came, the last one again and again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from workbench_engine.llm.contract import Choice, Completion, OnChunk, Request
from workbench_engine.llm.errors import ModelRefusedRequest
from workbench_sessions.errors import SessionError
from workbench_sessions.events import ExchangeRecorded
from workbench_sessions.reader import SessionReader

RECORDED = "recorded"
"""How the endpoint of a replayed answer is called."""

Match = Literal["content", "seed", "turn"]
"""What must be equal: the whole request; or its seed alone, for a run whose prompts differ from the recorded ones
because they show speedups that were measured anew. "turn": the whole request, or else the seed."""


class Exchange(Struct, frozen=True):
    """One request, by what identifies it, and what came back."""

    request: str
    n: int
    seed: int | None
    completion: Completion


class KeptChoice(Struct, frozen=True):
    """A choice whose texts are stored by their hash, as those of the session's other events are."""

    text: str
    reasoning: str
    finish: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


def request_key(request: Request) -> str:
    """sha256 of the request's content. `priority` does not change an answer and is left out."""
    content = msgspec.json.encode(replace(request, priority=None), order="sorted")
    return hashlib.sha256(content).hexdigest()


def sha256_of(text: str) -> str:
    """The name a text is stored under."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def packed(request: Request, done: Completion) -> tuple[ExchangeRecorded, dict[str, str]]:
    """The event of one exchange, and the texts to be stored with it."""
    texts: dict[str, str] = {}

    def put(text: str) -> str:
        name = sha256_of(text)
        texts[name] = text
        return name

    kept = [
        KeptChoice(put(c.text), put(c.reasoning) if c.reasoning else "", c.finish, c.token_ids, c.logprobs)
        for c in done.choices
    ]
    rest = msgspec.json.encode(replace(done, choices=())).decode()
    body = msgspec.json.encode({"choices": kept, "completion": msgspec.Raw(rest.encode())}).decode()
    event = ExchangeRecorded(request=request_key(request), n=request.n, seed=request.seed, exchange_sha256=put(body))
    return event, texts


class _Body(Struct, frozen=True):
    choices: list[KeptChoice]
    completion: Completion


def unpacked(event: ExchangeRecorded, text_of: Callable[[str], str]) -> Exchange:
    """Inverse of `packed`. Raises KeyError for a text that is not there, msgspec.DecodeError for an unreadable one."""
    body = msgspec.json.decode(text_of(event.exchange_sha256), type=_Body)
    choices = tuple(
        msgspec.convert(
            {
                "text": text_of(kept.text),
                "reasoning": text_of(kept.reasoning) if kept.reasoning else "",
                "finish": kept.finish,
                "token_ids": kept.token_ids,
                "logprobs": kept.logprobs,
            },
            Choice,
        )
        for kept in body.choices
    )
    return Exchange(event.request, event.n, event.seed, replace(body.completion, choices=choices))


class Answering(Protocol):
    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion: ...

    async def aclose(self) -> None: ...


Keep = Callable[[Request, Completion], None]
"""Keeps one exchange, before its answer is used."""


class RecordingModel:
    """`Model` that keeps what another one answers. Failures are not kept: a replay has none."""

    def __init__(self, inner: Answering, keep: Keep) -> None:
        self.inner = inner
        self._keep = keep

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        """See `Model`."""
        done = await self.inner.complete(request, on_chunk)
        self._keep(request, done)
        return done

    async def aclose(self) -> None:
        """Closes the inner one."""
        await self.inner.aclose()


class TrafficFile:
    """Exchanges as JSON lines, appended whole and synced; several processes may append to one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, request: Request, done: Completion) -> None:
        """Raises OSError."""
        line = msgspec.json.encode(Exchange(request_key(request), request.n, request.seed, done)) + b"\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # A writer that was killed may have left half a line: it must not swallow this one.
            if file.tell() and not _ends_line(self._path):
                line = b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


class RecordingProblem(ValueError):
    """A recording that cannot be used. `str()` is one line."""


def read_traffic(path: Path) -> list[Exchange]:
    """All exchanges of a session file or of a file of JSON lines; half-written lines are left out.

    Raises RecordingProblem.
    """
    try:
        with path.open("rb") as file:
            is_session = file.read(15) == b"SQLite format 3"
        found = _of_session(path) if is_session else _of_lines(path)
    except OSError as error:
        raise RecordingProblem(f"{path.name}: cannot be read ({error.strerror or error})") from None
    except (SessionError, KeyError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise RecordingProblem(f"{path.name}: its recorded answers cannot be read ({error})") from None
    if not found:
        raise RecordingProblem(f"{path.name}: holds no recorded answers; was its policy one that asks a model?")
    return found


def _of_lines(path: Path) -> list[Exchange]:
    found = []
    for line in path.read_bytes().split(b"\n"):
        if line.strip():
            try:
                found.append(msgspec.json.decode(line, type=Exchange))
            except msgspec.ValidationError:
                raise
            except msgspec.DecodeError:
                # Half a line of a writer that was killed.
                continue
    return found


def _of_session(path: Path) -> list[Exchange]:
    with SessionReader(path) as reader:
        events = [s.event for s in reader.of_kind("ExchangeRecorded") if isinstance(s.event, ExchangeRecorded)]
        return [unpacked(event, reader.source) for event in events]


class ReplayModel:
    """`Model` that answers from what was recorded; its answers say so (`endpoint` is "recorded"). Costs nothing."""

    def __init__(self, exchanges: Iterable[Exchange], match: Match = "content", source: str = "the recording") -> None:
        self._match = match
        self._source = source
        self._answers: dict[str, list[Completion]] = {}
        self._size = 0
        for one in exchanges:
            self._size += 1
            for name in self._names(one.request, one.seed):
                self._answers.setdefault(name, []).append(one.completion)
        self._taken: dict[str, int] = {}

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        """See `Model`. Raises NotRecorded for a request without an answer."""
        names = self._names(request_key(request), request.seed)
        name = next((one for one in names if one in self._answers), None)
        if name is None:
            raise NotRecorded(self._source, self._size, self._match, over=bool(self._taken))
        answers = self._answers[name]
        taken = self._taken.get(name, 0)
        self._taken[name] = taken + 1
        done = answers[min(taken, len(answers) - 1)]
        if on_chunk is not None and done.choices:
            on_chunk(done.choices[0].text)
        return replace(
            done, choices=done.choices[: request.n], endpoint=RECORDED, cost=0.0 if done.cost is not None else None
        )

    async def aclose(self) -> None:
        """Nothing to close."""

    def _names(self, request: str, seed: int | None) -> list[str]:
        """What an answer may be found by, the best first."""
        by_seed = [f"seed {seed}"] if seed is not None else []
        return {"content": [request], "seed": by_seed, "turn": [request, *by_seed]}[self._match]


class NotRecorded(ModelRefusedRequest):
    """The recording has no answer to this request. `over`: it had to earlier ones, so that it has come to its end."""

    def __init__(self, source: str, size: int, match: Match, over: bool = False) -> None:
        remedy = (
            'run the same task, seed and templates as it did, or set llm.replay_match = "turn" to take the answer '
            "of the same turn whatever the prompt says"
            if match == "content"
            else "run with the seed it was recorded with, and not longer"
        )
        super().__init__(f"{source} has no answer to this request among its {size}", remedy)
        self.over = over


def replay_of(path: Path, match: Match) -> ReplayModel:
    """A model that answers from `path`. Raises RecordingProblem."""
    return ReplayModel(read_traffic(path), match, path.name)


def keep_with(say: Callable[[ExchangeRecorded, Mapping[str, str]], None]) -> Keep:
    """Keeps exchanges as events of a session."""

    def keep(request: Request, done: Completion) -> None:
        say(*packed(request, done))

    return keep
