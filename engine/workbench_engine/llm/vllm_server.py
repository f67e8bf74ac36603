"""A vLLM server as a supervised child of the engine, or one that runs already.

The server runs behind `keeper`, which ends all its processes when the engine is gone. `VllmModel` is a `Model` that
starts the server at the first request and again when it died.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from workbench_engine.llm import keeper
from workbench_engine.llm.client import OpenAIModel
from workbench_engine.llm.contract import Completion, OnChunk, Request
from workbench_engine.llm.errors import ModelError, ModelRefusedRequest, ModelUnavailable
from workbench_engine.llm.meter import Meter
from workbench_engine.llm.settings import Endpoint, LlmSettings
from workbench_engine.llm.vllm_settings import (
    KEY_VARIABLE,
    VllmSettings,
    command_line,
    endpoint_of,
    environment_of,
    progress_line,
    served_name,
    telling_line,
)

HEALTH_S = 0.5
CLOSE_S = 1.5
"""So long `aclose` waits; the keeper ends the server in any case."""

PREPARE_S = 1.0
RESTARTS = 3
TAIL_BYTES = 65_536

State = Literal["starting", "ready", "ended", "failed"]


class ServerState(Struct, frozen=True):
    """What a server is at. `seconds` since it was started; `text` for people."""

    state: State
    text: str
    seconds: float = 0.0


Tell = Callable[[ServerState], None]


class ServerFailed(ModelRefusedRequest):
    """The server cannot be started: asking again would not help until a person has mended something."""


class VllmServer:
    """One server. `start` it, then `endpoint` can be asked with `environment`; `aclose` ends every process of it."""

    def __init__(
        self,
        settings: VllmSettings,
        llm: LlmSettings,
        log: Path,
        tell: Tell = lambda state: None,
        *,
        outer: Mapping[str, str] = os.environ,
    ) -> None:
        """`llm.model` is the model's folder or name; `log` the file that keeps what the server writes."""
        self._settings = settings
        self._llm = llm
        self._tell = tell
        self._outer = outer
        self._process: asyncio.subprocess.Process | None = None
        self._log_from = 0
        self.log = log
        self.endpoint: Endpoint | None = None
        self.environment: Mapping[str, str] = outer

    @property
    def alive(self) -> bool:
        """Whether it runs; one that was attached to is taken to."""
        if self._settings.attach:
            return self.endpoint is not None
        return self._process is not None and self._process.returncode is None

    @property
    def model(self) -> str:
        """What the model is called."""
        return served_name(self._llm.model)

    @property
    def pid(self) -> int | None:
        """Of the keeper; None when nothing was started."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> Endpoint:
        """Starts (or finds) the server and waits until it answers. Raises ServerFailed, ModelUnavailable (attached)."""
        if self._settings.attach:
            return await self._attach()
        if not self._llm.model:
            raise ServerFailed("no model is named", "give --model PATH, a folder or a name that vLLM can load")
        for last in (False, True):
            try:
                return await self._start()
            except _PortTaken:
                # Somebody else took the port between our looking and the server's binding.
                if last or self._settings.port:
                    raise ServerFailed("vllm: its port is taken", "set vllm.port to a free one, or 0") from None
        raise AssertionError

    async def aclose(self) -> None:
        """Ends the server with all its processes; returns when they are gone, or after `CLOSE_S` while they go."""
        process, self._process = self._process, None
        self.endpoint = None
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), CLOSE_S)
        self._tell(ServerState("ended", "the server was ended"))

    def tail(self, lines: int = 200) -> str:
        """The end of this server's log."""
        return "\n".join(self._read().splitlines()[-lines:])

    def last_words(self) -> str:
        """The line of its log that says why it ended, if it did."""
        return self._shown(telling_line(self.tail()))

    async def load_adapter(self, name: str, folder: Path) -> Endpoint:
        """Loads a LoRA adapter; the endpoint that asks it. Raises ModelRefusedRequest with what the server said.

        Always under a new name and from a new folder: what is cached of an old one may be used again.
        """
        await self._post("load_lora_adapter", {"lora_name": name, "lora_path": str(folder.absolute())})
        assert self.endpoint is not None
        return replace(self.endpoint, model=name)

    async def unload_adapter(self, name: str) -> None:
        """Inverse of `load_adapter`. Raises ModelRefusedRequest."""
        await self._post("unload_lora_adapter", {"lora_name": name})

    async def _start(self) -> Endpoint:
        port = self._settings.port or _free_port()
        model = str(Path(self._llm.model).expanduser())
        model = model if Path(model).is_dir() else self._llm.model
        if model.startswith(("/", "./", "../", "~")) and not Path(model).exists():
            raise ServerFailed(f"model {self._llm.model}: no such folder", "give --model the folder of a model")
        if Path(model).is_dir():
            model = str(Path(model).absolute())
        key = secrets.token_urlsafe(24)
        cores = sorted(os.sched_getaffinity(0))
        started_s = time.monotonic()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as out:
            self._log_from = out.tell()
            self._process = process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                str(Path(keeper.__file__)),
                *command_line(self._settings, model, port),
                stdin=asyncio.subprocess.PIPE,
                stdout=out,
                stderr=out,
                env=environment_of(self._settings, model, key, cores, self._outer),
                start_new_session=True,
            )
        try:
            await self._until_healthy(process, port, started_s)
        except BaseException:
            await self.aclose()
            raise
        self.environment = {KEY_VARIABLE: key}
        self.endpoint = endpoint_of(self._llm, f"http://127.0.0.1:{port}/v1", served_name(model))
        self._tell(ServerState("ready", f"vllm serves {served_name(model)}", time.monotonic() - started_s))
        return self.endpoint

    async def _until_healthy(self, process: asyncio.subprocess.Process, port: int, started_s: float) -> None:
        said = ""
        self._tell(ServerState("starting", f"vllm starts with {served_name(self._llm.model)}"))
        while True:
            seconds = time.monotonic() - started_s
            if process.returncode is not None:
                raise self._failed(f"vllm ended with status {process.returncode} while it started", seconds)
            with suppress(OSError):
                status, _ = await http(f"http://127.0.0.1:{port}/health", timeout_s=2.0)
                if status == 200:
                    return
            if seconds > self._settings.start_s:
                raise self._failed(f"vllm did not answer within {self._settings.start_s:g} s", seconds)
            now = self._shown(progress_line(self._read()))
            if now and now != said:
                self._tell(ServerState("starting", now, seconds))
                said = now
            await asyncio.sleep(HEALTH_S)

    def _failed(self, what: str, seconds: float) -> Exception:
        why = self._shown(telling_line(self._read()))
        if "address already in use" in why.lower():
            return _PortTaken()
        self._tell(ServerState("failed", f"{what}: {why}" if why else what, seconds))
        return ServerFailed(f"{what}: {why}" if why else what, f"its log is {self.log.name}, beside the session")

    async def _attach(self) -> Endpoint:
        base = self._settings.attach.rstrip("/")
        self.environment = self._outer
        endpoint = endpoint_of(self._llm, base, self._llm.model or "?")
        served = await self._served(endpoint)
        wanted = served_name(self._llm.model)
        names = [n for n in (self._llm.model, wanted) if n in served] or ([] if wanted else served[:1])
        if not names:
            raise ServerFailed(
                f"the server at {base} serves {', '.join(served) or 'nothing'}, not {wanted}",
                "name one of these with --model",
            )
        self.endpoint = endpoint_of(self._llm, base, names[0])
        self._tell(ServerState("ready", f"attached to a server of {names[0]}"))
        return self.endpoint

    async def _served(self, endpoint: Endpoint) -> list[str]:
        key = self._outer.get(KEY_VARIABLE, "none")
        try:
            status, text = await http(f"{endpoint.base_url}/models", key=key, direct=endpoint.local)
        except OSError as error:
            what = f"no server answers at {endpoint.base_url} ({error})"
            raise ModelUnavailable(what, "start it, or leave vllm.attach empty") from error
        if status in (401, 403):
            raise ServerFailed(f"the server at {endpoint.base_url} wants a key", f"export it as {KEY_VARIABLE}")
        try:
            return [str(one["id"]) for one in json.loads(text)["data"]]
        except (ValueError, KeyError, TypeError):
            what = f"what answers at {endpoint.base_url} is no server of models (status {status})"
            raise ServerFailed(what, "give its address as http://HOST:PORT/v1") from None

    async def _post(self, route: str, body: dict[str, Any]) -> None:
        if self.endpoint is None:
            raise ModelUnavailable("vllm is not running")
        key = self.environment.get(KEY_VARIABLE, "none")
        url = f"{self.endpoint.base_url}/{route}"
        try:
            status, text = await http(url, body, key=key, timeout_s=300.0, direct=self.endpoint.local)
        except OSError as error:
            raise ModelUnavailable(f"vllm did not answer ({error})") from error
        if status != 200:
            said = " ".join(text.split())[:300]
            raise ModelRefusedRequest(f"vllm: {route} of {body['lora_name']}: {said}", "needs vllm.lora = true")

    def _shown(self, line: str) -> str:
        """A line of the log as a session may hold it: without the model's place on this machine."""
        place = str(Path(self._llm.model).expanduser())
        return line.replace(str(Path(place).absolute()), self.model).replace(place, self.model)

    def _read(self) -> str:
        try:
            with self.log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._log_from, size - TAIL_BYTES))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""


class _PortTaken(Exception):
    pass


@asynccontextmanager
async def serving(
    settings: VllmSettings, llm: LlmSettings, log: Path, tell: Tell = lambda state: None
) -> AsyncIterator[VllmServer]:
    """A server that answers, ended with everything that came of it on leaving. Raises as `VllmServer.start`."""
    server = VllmServer(settings, llm, log, tell)
    try:
        await server.start()
        yield server
    finally:
        await server.aclose()


class VllmModel:
    """`Model` over a server that is started at the first request, and again (`RESTARTS` times) when it died."""

    def __init__(self, server: VllmServer, meter: Meter | None = None) -> None:
        self._server = server
        self._meter = meter
        self._client: OpenAIModel | None = None
        self._starting: asyncio.Task[OpenAIModel] | None = None
        self._starts = 0

    async def prepare(self) -> None:
        """Starts the server. Raises ModelUnavailable while it starts, ServerFailed when it cannot."""
        await asyncio.wait({self._ready()}, timeout=PREPARE_S)
        if not self._ready().done():
            raise ModelUnavailable(f"vllm starts with {self._server.model}", retry_after_s=PREPARE_S)
        await self._client_of()

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        """See `Model`. The first call waits for the server. Raises ServerFailed when it cannot be started."""
        client = await self._client_of()
        try:
            return await client.complete(request, on_chunk)
        except ModelUnavailable:
            if self._server.alive:
                raise
            raise ModelUnavailable(
                f"vllm ended: {self._server.last_words() or 'it said nothing'}", retry_after_s=0.0
            ) from None

    async def aclose(self) -> None:
        """Ends the server."""
        starting, self._starting = self._starting, None
        if starting is not None and not starting.done():
            starting.cancel()
        client, self._client = self._client, None
        await self._server.aclose()
        if client is not None:
            await client.aclose()

    def _ready(self) -> asyncio.Task[OpenAIModel]:
        """The start that all requests wait for; a new one when the server has ended."""
        starting = self._starting
        if starting is None or (_succeeded(starting) and not self._server.alive):
            self._starting = starting = asyncio.create_task(self._start())
        # One that failed stays until somebody was told so (`_client_of`).
        return starting

    async def _client_of(self) -> OpenAIModel:
        starting = self._ready()
        try:
            # One caller who gives up must not end the start that the others wait for.
            return await asyncio.shield(starting)
        except ModelError:
            if starting is self._starting:
                self._starting = None
            raise

    async def _start(self) -> OpenAIModel:
        if self._starts > RESTARTS:
            why = self._server.last_words()
            raise ServerFailed(f"vllm ended {self._starts} times{f': {why}' if why else ''}", "see its log")
        stale, self._client = self._client, None
        if stale is not None:
            await stale.aclose()
        await self._server.aclose()
        endpoint = await self._server.start()
        self._starts += 1
        self._client = OpenAIModel(endpoint, self._meter, environment=self._server.environment)
        return self._client


def _succeeded(task: asyncio.Task[OpenAIModel]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


async def http(
    url: str, body: dict[str, Any] | None = None, *, key: str = "", timeout_s: float = 10.0, direct: bool = True
) -> tuple[int, str]:
    """(status, text) of a GET, or of a POST of `body` as JSON. `direct`: past any proxy. Raises OSError."""

    def ask() -> tuple[int, str]:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        data = json.dumps(body).encode() if body is not None else None
        if data is not None:
            headers["content-type"] = "application/json"
        opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if direct else []))
        try:
            with opener.open(urllib.request.Request(url, data, headers), timeout=timeout_s) as answer:
                return int(answer.status), answer.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as refused:
            return int(refused.code), refused.read().decode("utf-8", "replace")
        except HTTPException as broken:
            raise OSError(f"no answer in HTTP: {type(broken).__name__}") from broken

    return await asyncio.to_thread(ask)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
