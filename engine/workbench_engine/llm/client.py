"""The client of one endpoint: any server that speaks OpenAI's chat completions.

Retries, pacing, caps, shortening and what servers do not accept are all handled here, so that whoever asks gets an
answer or one typed error. `openai` is imported at the first request.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from workbench_engine.llm.adapting import Quirks, learned
from workbench_engine.llm.backoff import Backoff
from workbench_engine.llm.body import body_of, take_choice, usage_of
from workbench_engine.llm.contract import Completion, Message, OnChunk, Request
from workbench_engine.llm.cost import estimated_tokens
from workbench_engine.llm.errors import ContextTooLong, ModelError
from workbench_engine.llm.gathering import Gathering
from workbench_engine.llm.meter import Meter
from workbench_engine.llm.pacing import Pace
from workbench_engine.llm.settings import Endpoint, key_of
from workbench_engine.llm.shortening import characters, fitted, unmarked

if TYPE_CHECKING:
    import openai

CHARACTERS_KEPT = 10
"""Characters of an answer that are kept for each token asked for: a server may ignore the limit it was given."""

REFITS = 8
"""So often a prompt is shortened, or a parameter given up, before a server's "no" is believed."""

THICKEST = 4.0
"""The most tokens for three characters that are believed: reservations follow what servers count."""

Sleep = Callable[[float], Awaitable[None]]


class OpenAIModel:
    """`Model` over one endpoint. Used from one event loop."""

    def __init__(
        self,
        endpoint: Endpoint,
        meter: Meter | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
        backoff: Backoff = Backoff(),
        rng: random.Random | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Raises BadCredentials when the endpoint needs a key and its variable holds none."""
        self.endpoint = endpoint
        self._key = key_of(endpoint, environment)
        self._meter = meter or Meter()
        self._pace = Pace(endpoint.concurrency, endpoint.requests_per_minute, endpoint.tokens_per_minute)
        self._backoff = backoff
        self._rng = rng or random.Random()
        self._sleep = sleep
        self._quirks = Quirks()
        self._context = endpoint.context
        self._thicker = 1.0
        self._client: openai.AsyncOpenAI | None = None

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        """See `Model`. `on_chunk("")` says that the answer starts afresh."""
        if request.n > 1 and self._quirks.single:
            return await self._one_by_one(request, on_chunk)
        attempt = refits = 0
        wasted = Wasted()
        while True:
            messages, answer_tokens = self._fit(request)
            body = body_of(request, messages, answer_tokens, self.endpoint, self._streams(request))
            try:
                done = await self._try(request, messages, self._quirks.applied(body), on_chunk, wasted)
                break
            except ModelError as error:
                wasted.told_to(error)
                raise
            except Exception as error:
                from workbench_engine.llm.failures import failure_of, message_of

                failure = failure_of(error, self.endpoint, self._key)
                if refits < REFITS and self._learn(failure.error, body, message_of(error)):
                    refits += 1
                    if request.n > 1 and self._quirks.single:
                        return await self._one_by_one(request, on_chunk)
                    continue
                if not failure.again or attempt >= self.endpoint.retries:
                    wasted.told_to(failure.error)
                    raise failure.error from error
                wait_s = self._backoff.delay_s(attempt, self._rng, failure.hint_s)
                if failure.limited:
                    self._pace.limited(wait_s)
                attempt += 1
            if on_chunk is not None:
                on_chunk("")
            await self._sleep(wait_s)
        self._pace.served()
        done = replace(done, wasted_tokens=wasted.tokens, wasted_cost=wasted.cost)
        if len(done.choices) < request.n:
            # It took `n` and gave fewer without a word.
            self._quirks = replace(self._quirks, single=True)
            rest = replace(request, n=request.n - len(done.choices), seed=_shifted(request.seed, len(done.choices)))
            try:
                return merged([done, await self._one_by_one(rest, None)])
            except ModelError as error:
                # What is there is paid for, and better than nothing.
                return _with_waste(done, [error])
        return done

    async def aclose(self) -> None:
        """Closes the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _streams(self, request: Request) -> bool:
        return self.endpoint.stream and not request.logprobs

    def _fit(self, request: Request) -> tuple[tuple[Message, ...], int]:
        wanted = request.max_tokens or self.endpoint.max_tokens
        found = fitted(request.messages, wanted, self._context, self._tokens_of)
        if found is None:
            raise ContextTooLong(
                f"{self.endpoint.label}: the prompt has about {self._tokens_of(characters(request.messages))} tokens, "
                f"the model's context {self._context}",
                "use a model with a larger context",
                self._context,
            )
        return found

    def _tokens_of(self, count: int) -> int:
        return round(estimated_tokens(count) * self._thicker)

    def _learn(self, error: ModelError, body: dict[str, Any], said: str) -> bool:
        """Whether something was learned that makes another try worth it."""
        if isinstance(error, ContextTooLong):
            sent = estimated_tokens(sum(len(m["content"]) for m in body["messages"])) + body["max_tokens"]
            known = error.limit_tokens or self._context or sent
            if known == self._context:
                # It should have fitted, so our tokens are larger than the server's count of them.
                self._thicker *= 1.3
            self._context = known
            return True
        quirks = learned(self._quirks, self._quirks.applied(body), said) if _rejected(error) else None
        if quirks is None or quirks == self._quirks:
            return False
        self._quirks = quirks
        return True

    async def _one_by_one(self, request: Request, on_chunk: OnChunk | None) -> Completion:
        """`n` requests for one answer each; a part of them is enough."""
        ones = [replace(request, n=1, seed=_shifted(request.seed, i)) for i in range(request.n)]
        asked = [self.complete(one, on_chunk if i == 0 else None) for i, one in enumerate(ones)]
        results = await asyncio.gather(*asked, return_exceptions=True)
        done = [r for r in results if isinstance(r, Completion)]
        failed = [r for r in results if isinstance(r, BaseException)]
        if not done:
            raise failed[0]
        for error in failed:
            if not isinstance(error, ModelError):
                raise error
        return _with_waste(merged(done), [e for e in failed if isinstance(e, ModelError)])

    async def _try(
        self,
        request: Request,
        messages: tuple[Message, ...],
        body: dict[str, Any],
        on_chunk: OnChunk | None,
        wasted: Wasted,
    ) -> Completion:
        """One try: a place, a reservation, one request. Raises what `openai` raises, TimeoutError, Broken, CutOff."""
        plain = unmarked(messages)
        tokens_in = self._tokens_of(sum(len(m.content) for m in plain))
        body = {**body, "messages": [{"role": m.role, "content": m.content} for m in plain]}
        length_name = self._quirks.length_name
        async with self._pace.place(tokens_in + body[length_name]):
            hold = await self._meter.reserve(tokens_in, body[length_name] * request.n, self.endpoint.price)
            body[length_name] = max(1, hold.answer_tokens // request.n)
            received = Received(request.n, body[length_name] * CHARACTERS_KEPT)
            try:
                await self._exchange(body, received, on_chunk)
            except BaseException:
                # What had arrived was paid for; what did not even begin was not.
                began = received.characters > 0
                lost = (tokens_in if began else 0, estimated_tokens(received.characters))
                wasted.add(sum(lost), self._meter.settle(hold, *lost))
                raise
            usage = received.usage
            if usage is not None and usage[0] > tokens_in > 0:
                self._thicker = min(THICKEST, self._thicker * usage[0] / tokens_in)
            counts = usage or (tokens_in, estimated_tokens(received.characters), 0)
            cost = self._meter.settle(hold, *counts)
        return Completion(
            choices=tuple(g.choice() for g in received.gatherings if g.characters or g.finish),
            tokens_in=counts[0],
            tokens_out=counts[1],
            cached_tokens=counts[2],
            cost=cost,
            latency_s=received.latency_s,
            first_token_s=received.first_token_s,
            model=self.endpoint.model,
            endpoint=self.endpoint.label,
            request_id=received.request_id,
            prompt_token_ids=received.prompt_token_ids,
            estimated=usage is None,
        )

    async def _exchange(self, body: dict[str, Any], received: Received, on_chunk: OnChunk | None) -> None:
        completions = self._connected().chat.completions
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self.endpoint.total_s
        streams = bool(body.pop("stream", False))
        model, messages = body.pop("model"), body.pop("messages")
        patience_s = self.endpoint.first_token_s if streams else self.endpoint.total_s
        async with asyncio.timeout_at(min(end_s, loop.time() + patience_s)) as alarm:
            received.started()
            if not streams:
                answer = await completions.create(model=model, messages=messages, extra_body=body)
                received.whole(answer)
                return
            stream = await completions.create(model=model, messages=messages, stream=True, extra_body=body)
            async with _closing(stream):
                async for chunk in stream:
                    text = received.chunk(chunk)
                    alarm.reschedule(min(end_s, loop.time() + self.endpoint.stall_s))
                    if text and on_chunk is not None:
                        on_chunk(text)
                    if received.full:
                        break
        received.check()

    def _connected(self) -> openai.AsyncOpenAI:
        if self._client is None:
            import openai

            # A proxy of the environment must not stand between us and a server on this machine.
            http = openai.DefaultAsyncHttpxClient(trust_env=not self.endpoint.local)
            # Timeouts are ours, so only the connection gets one of its own; retries are ours too.
            timeout = openai.Timeout(None, connect=self.endpoint.connect_s)
            self._client = openai.AsyncOpenAI(
                api_key=self._key, base_url=self.endpoint.base_url, max_retries=0, timeout=timeout, http_client=http
            )
        return self._client


class Wasted:
    """What failed tries of one request had cost."""

    def __init__(self) -> None:
        self.tokens = 0
        self.cost = 0.0

    def add(self, tokens: int, cost: float | None) -> None:
        self.tokens += tokens
        self.cost += cost or 0.0

    def told_to(self, error: ModelError) -> None:
        error.wasted_tokens, error.wasted_cost = self.tokens, self.cost


class Received:
    """What has come of one HTTP answer so far."""

    def __init__(self, n: int, limit: int) -> None:
        self.gatherings = [Gathering(limit) for _ in range(n)]
        self.usage: tuple[int, int, int] | None = None
        self.request_id = ""
        self.prompt_token_ids: tuple[int, ...] = ()
        self.first_token_s: float | None = None
        self._start_s = time.monotonic()
        self._end_s = self._start_s
        self._whole = False

    def started(self) -> None:
        self._start_s = self._end_s = time.monotonic()

    @property
    def latency_s(self) -> float:
        return self._end_s - self._start_s

    @property
    def characters(self) -> int:
        return sum(g.characters for g in self.gatherings)

    @property
    def full(self) -> bool:
        """Every answer has reached its cap."""
        return all(g.full for g in self.gatherings)

    def chunk(self, chunk: Any) -> str:
        """Takes one chunk; returns the new text of the first answer."""
        data = _plain(chunk)
        self._common(data)
        text = ""
        for choice in data.get("choices") or []:
            index = choice.get("index") or 0 if isinstance(choice, Mapping) else -1
            if 0 <= index < len(self.gatherings):
                new = take_choice(self.gatherings[index], choice)
                text += new if index == 0 else ""
        if self.first_token_s is None and self.characters:
            self.first_token_s = time.monotonic() - self._start_s
        return text

    def whole(self, answer: Any) -> None:
        """Takes an answer that came in one piece. Raises Broken when it holds no choices."""
        data = _plain(answer)
        self._common(data)
        choices = data.get("choices") or []
        for gathering, choice in zip(self.gatherings, choices, strict=False):
            take_choice(gathering, choice)
        ids = data.get("prompt_token_ids") or []
        self.prompt_token_ids = tuple(i for i in ids if isinstance(i, int))
        self._whole = True
        self.check()

    def check(self) -> None:
        """Raises Broken when nothing came, CutOff when a stream ended in the middle of an answer."""
        from workbench_engine.llm.failures import Broken, CutOff

        if not any(g.characters or g.finish for g in self.gatherings):
            raise Broken("it holds no answer")
        cut = any(g.characters and not g.finish and not g.full for g in self.gatherings)
        # Usage is the last thing a server sends: with it the stream was whole, whatever it says of its end.
        if cut and not self._whole and self.usage is None:
            raise CutOff("the stream ended in the middle of an answer")

    def _common(self, data: Mapping[str, Any]) -> None:
        self._end_s = time.monotonic()
        self.usage = usage_of(data.get("usage")) or self.usage
        self.request_id = str(data.get("id") or self.request_id)


def _plain(answer: Any) -> dict[str, Any]:
    """An openai object as plain data. Raises Broken for what is none (a page of HTML comes as text)."""
    from workbench_engine.llm.failures import Broken

    dump = getattr(answer, "model_dump", None)
    data = dump(warnings=False) if dump is not None else answer
    if not isinstance(data, dict):
        raise Broken(f"it is no JSON object but {type(answer).__name__}")
    return data


def merged(parts: list[Completion]) -> Completion:
    """Several completions of one request as one."""
    costs = [p.cost for p in parts if p.cost is not None]
    firsts = [p.first_token_s for p in parts if p.first_token_s is not None]
    return replace(
        parts[0],
        choices=tuple(c for p in parts for c in p.choices),
        tokens_in=sum(p.tokens_in for p in parts),
        tokens_out=sum(p.tokens_out for p in parts),
        cached_tokens=sum(p.cached_tokens for p in parts),
        cost=sum(costs) if costs else None,
        latency_s=max(p.latency_s for p in parts),
        first_token_s=min(firsts) if firsts else None,
        estimated=any(p.estimated for p in parts),
        wasted_tokens=sum(p.wasted_tokens for p in parts),
        wasted_cost=sum(p.wasted_cost for p in parts),
    )


def _with_waste(done: Completion, failed: list[ModelError]) -> Completion:
    """With what requests beside it cost that failed."""
    return replace(
        done,
        wasted_tokens=done.wasted_tokens + sum(e.wasted_tokens for e in failed),
        wasted_cost=done.wasted_cost + sum(e.wasted_cost for e in failed),
    )


def _shifted(seed: int | None, by: int) -> int | None:
    return None if seed is None else seed + by


def _rejected(error: ModelError) -> bool:
    from workbench_engine.llm.errors import BadCredentials, ModelRefusedRequest

    return isinstance(error, ModelRefusedRequest) and not isinstance(error, BadCredentials)


@asynccontextmanager
async def _closing(stream: Any) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await stream.close()
