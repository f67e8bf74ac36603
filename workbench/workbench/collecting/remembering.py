"""Models that ask nothing twice: what an earlier, killed collection was answered is taken from its traffic."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from workbench_engine.llm.contract import Completion, OnChunk, Request
from workbench_engine.llm.meter import Spent
from workbench_engine.llm.recording import Exchange, RecordingModel, TrafficFile, read_traffic, request_key


class Answering(Protocol):
    """A model that holds connections."""

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion: ...

    async def aclose(self) -> None: ...


class Remembering:
    """`Model` over another one. A remembered answer is the one that was paid for, with its tokens and its cost."""

    def __init__(self, inner: Answering, traffic: Path) -> None:
        """Raises RecordingProblem for traffic that cannot be read."""
        self._before = {one.request: one.completion for one in kept_traffic(traffic)}
        self._model = RecordingModel(inner, TrafficFile(traffic).keep)

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        """See `Model`. Raises OSError when the answer cannot be kept."""
        before = self._before.get(request_key(request))
        return before if before is not None else await self._model.complete(request, on_chunk)

    async def aclose(self) -> None:
        """Closes the other one."""
        await self._model.aclose()


def kept_traffic(path: Path) -> list[Exchange]:
    """The exchanges of one model; none where there is no file or only half a line. Raises RecordingProblem."""
    return read_traffic(path) if path.is_file() and b"\n" in path.read_bytes() else []


def spent_on(exchanges: Iterable[Exchange]) -> Spent:
    """What these answers cost, the tries that failed before them included."""
    money, tokens, requests, unpriced = 0.0, 0, 0, 0
    for one in exchanges:
        done = one.completion
        requests += 1
        unpriced += done.cost is None
        money += (done.cost or 0.0) + done.wasted_cost
        tokens += done.tokens_in + done.tokens_out + done.wasted_tokens
    return Spent(money, tokens, requests, unpriced)


def traffic_file(folder: Path, model: str) -> Path:
    """Where the traffic with one model is kept: names may hold what no file's name may."""
    plain = "".join(c if c.isalnum() and c.isascii() else "-" for c in model)[:40]
    return folder / "traffic" / f"{hashlib.sha256(model.encode()).hexdigest()[:8]}-{plain}.jsonl"
