"""A stand-in for a model server: OpenAI's chat completions over HTTP/1.1, a fixed latency, canned answers, a count.

It answers at most `at_once` requests together and lets others wait, as a real server with that many places does.
No model is behind it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

Answer = Callable[[dict[str, Any], int], str]
PIECE = 200
"""Characters a streamed piece."""


class Endpoint:
    """`requests` counts what was answered; `most` and `mean` say how many were worked on together."""

    def __init__(self, answer: Answer, latency_s: float, at_once: int) -> None:
        self._answer = answer
        self._latency_s = latency_s
        self._places = asyncio.Semaphore(at_once)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._busy = 0
        self._busy_s = 0.0
        self._changed_s = 0.0
        self.requests = 0
        self.streamed = 0
        self.most = 0
        self.first_s: float | None = None
        self.last_s = 0.0
        self.base_url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.close()
        await self._server.wait_closed()

    @property
    def mean(self) -> float:
        """Requests worked on together, averaged over the time from the first one's arrival to the last one's answer."""
        return self._busy_s / max(1e-9, self.last_s - self.first_s) if self.first_s is not None else 0.0

    def _count(self, change: int) -> None:
        now_s = time.monotonic()
        self._busy_s += self._busy * (now_s - self._changed_s) if self._busy else 0.0
        self._changed_s = now_s
        self._busy += change
        self.most = max(self.most, self._busy)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
                body = json.loads(await reader.readexactly(int(fields.get("content-length", 0))) or b"{}")
                if self.first_s is None:
                    self.first_s = time.monotonic()
                await self._reply(body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            # The client has gone.
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _reply(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        async with self._places:
            self._count(+1)
            try:
                await asyncio.sleep(self._latency_s)
                self.requests += 1
                text = self._answer(body, self.requests)
                if body.get("stream"):
                    self.streamed += 1
                    writer.write(_stream(text))
                else:
                    writer.write(_whole(text))
                await writer.drain()
            finally:
                self._count(-1)
                self.last_s = time.monotonic()


USAGE = {"prompt_tokens": 1500, "completion_tokens": 200, "total_tokens": 1700}
COMMON: dict[str, Any] = {"id": "chat-1", "created": 0, "model": "stand-in"}


def _whole(text: str) -> bytes:
    choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    raw = json.dumps({**COMMON, "object": "chat.completion", "choices": [choice], "usage": USAGE}).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n"
    return head.encode() + raw


def _stream(text: str) -> bytes:
    deltas: list[dict[str, Any]] = [{"content": text[i : i + PIECE]} for i in range(0, len(text), PIECE)]
    choices: list[list[dict[str, Any]]] = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    chunk = {**COMMON, "object": "chat.completion.chunk"}
    events = [{**chunk, "choices": c} for c in choices] + [{**chunk, "choices": [], "usage": USAGE}]
    lines = [f"data: {json.dumps(event)}\n\n".encode() for event in events] + [b"data: [DONE]\n\n"]
    sent = b"".join(b"%x\r\n%b\r\n" % (len(line), line) for line in lines)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + sent + b"0\r\n\r\n"
