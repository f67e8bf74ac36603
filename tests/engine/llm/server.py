"""A real HTTP server that speaks OpenAI's chat completions, and misbehaves when its script says so.

Each request takes the next behaviour of the script, the last one again and again. It is a stand-in for a server of
models: the texts it sends are the test's, no model is behind it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

Behaviour = Callable[["Exchange"], Awaitable[None]]


class Exchange:
    """One request and the ways to answer it."""

    def __init__(self, path: str, headers: dict[str, str], body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.path = path
        self.headers = headers
        self.body = body
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def status(self, code: int, payload: Any, headers: dict[str, str] | None = None) -> None:
        """A whole answer: `payload` is text, or is sent as JSON."""
        raw = payload.encode() if isinstance(payload, str) else json.dumps(payload).encode()
        kind = "text/html" if isinstance(payload, str) else "application/json"
        lines = [f"HTTP/1.1 {code} X", f"content-type: {kind}", f"content-length: {len(raw)}"]
        lines += [f"{k}: {v}" for k, v in (headers or {}).items()]
        await self.send("\r\n".join([*lines, "", ""]).encode() + raw)

    async def begin_stream(self) -> None:
        await self.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")

    async def event(self, payload: Any) -> None:
        raw = payload if isinstance(payload, str) else json.dumps(payload)
        await self.send(f"data: {raw}\n\n".encode())

    async def delta(self, index: int = 0, finish: str | None = None, **delta: Any) -> None:
        choice = {"index": index, "delta": delta, "finish_reason": finish}
        await self.event({"id": "chat-1", "object": "chat.completion.chunk", "choices": [choice]})

    async def usage(self, tokens_in: int, tokens_out: int, cached: int = 0) -> None:
        details = {"cached_tokens": cached}
        usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "prompt_tokens_details": details}
        await self.event({"id": "chat-1", "object": "chat.completion.chunk", "choices": [], "usage": usage})

    async def end_stream(self) -> None:
        await self.event("[DONE]")
        self._writer.close()

    def cut(self) -> None:
        """Ends the connection here and now."""
        transport: Any = self._writer.transport
        transport.abort()


def says(*texts: str, reasoning: str = "", finish: str = "stop", tokens: tuple[int, int] = (100, 20)) -> Behaviour:
    """A good answer: one choice for each text (the request's `n` may cut them), in small pieces."""

    async def behave(x: Exchange) -> None:
        chosen = texts[: x.body.get("n", 1)]
        if not x.body.get("stream"):
            choices = [
                {"index": i, "message": {"role": "assistant", "content": t}, "finish_reason": finish}
                for i, t in enumerate(chosen)
            ]
            usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
            await x.status(200, {"id": "chat-1", "object": "chat.completion", "choices": choices, "usage": usage})
            return
        await x.begin_stream()
        if reasoning:
            await x.delta(reasoning_content=reasoning)
        for i, text in enumerate(chosen):
            for start in range(0, len(text), 200):
                await x.delta(i, content=text[start : start + 200])
            await x.delta(i, finish=finish)
        await x.usage(*tokens)
        await x.end_stream()

    return behave


def fails(status: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> Behaviour:
    """An error status with OpenAI's error object."""

    async def behave(x: Exchange) -> None:
        await x.status(status, {"error": {"message": message, **error}}, headers)

    return behave


async def garbage(x: Exchange) -> None:
    """A page of HTML with status 200, as a wrong address or a proxy gives."""
    await x.status(200, "<html><body>It works!</body></html>")


async def broken_json(x: Exchange) -> None:
    """A stream whose data is no JSON."""
    await x.begin_stream()
    await x.event('{"choices": [{"delta": {"con')
    await x.end_stream()


async def half(x: Exchange) -> None:
    """A stream that is cut in the middle of the answer, without a goodbye."""
    await x.begin_stream()
    await x.delta(content="half of an ans")
    x.cut()


async def half_politely(x: Exchange) -> None:
    """A stream that ends in the middle of the answer as if nothing were."""
    await x.begin_stream()
    await x.delta(content="half of an ans")
    x._writer.close()


async def disconnects(x: Exchange) -> None:
    """No answer at all."""
    x.cut()


async def silent(x: Exchange) -> None:
    """Accepts the request and says nothing until the client gives up."""
    await asyncio.sleep(30.0)


async def error_in_stream(x: Exchange) -> None:
    """A stream that carries an error object after some text."""
    await x.begin_stream()
    await x.delta(content="some ")
    await x.event({"error": {"message": "engine died", "code": 500}})
    await x.end_stream()


def endless(tokens: int) -> Behaviour:
    """An answer of so many tokens, whatever length was asked for."""

    async def behave(x: Exchange) -> None:
        await x.begin_stream()
        piece = "spam and eggs, " * 64
        for _ in range(tokens // 256):
            await x.delta(content=piece)
        await x.delta(finish="stop")
        await x.end_stream()

    return behave


class Server:
    """Answers with its script. `requests` are the bodies it was sent, `most_at_once` how many were open together."""

    def __init__(self, script: Sequence[Behaviour]) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.open = 0
        self.most_at_once = 0
        self.base_url = ""
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.most_at_once = max(self.most_at_once, self.open)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode().split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
                body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
                self.requests.append(body)
                self.headers.append(headers)
                behave = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                await behave(Exchange(first.split(" ")[1], headers, body, writer))
                if writer.is_closing():
                    break
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            # The client has gone, or the test is over.
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def serving(*script: Behaviour) -> AsyncIterator[Server]:
    """A server on a free port of this machine."""
    server = Server(script)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
