from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.engine.llm.server import (
    Behaviour,
    Exchange,
    Server,
    broken_json,
    disconnects,
    endless,
    error_in_stream,
    fails,
    garbage,
    half,
    half_politely,
    says,
    serving,
    silent,
)

from workbench_engine.llm.client import OpenAIModel
from workbench_engine.llm.contract import Completion, Message, Request, Structured, ask_with
from workbench_engine.llm.errors import (
    BadCredentials,
    CapReached,
    ContextTooLong,
    ModelError,
    ModelRefusedRequest,
    ModelUnavailable,
    NoAnswer,
    RateLimited,
)
from workbench_engine.llm.meter import Caps, Meter
from workbench_engine.llm.settings import Endpoint, Price
from workbench_engine.llm.shortening import optional

ASK = Request((Message("user", "make it fast"),))


class Waits:
    """Stands for sleeping: notes how long was asked for."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def against(
    *script: Behaviour,
    ask: Callable[[OpenAIModel, Server], Awaitable[Any]] = lambda model, _: model.complete(ASK),
    meter: Meter | None = None,
    environment: dict[str, str] | None = None,
    **settings: Any,
) -> tuple[Any, Server, list[float]]:
    """What `ask` gave (or the error it raised), the server, and the waits between tries."""

    async def live() -> tuple[Any, Server, list[float]]:
        waits = Waits()
        async with serving(*script) as server:
            endpoint = Endpoint(**{"base_url": server.base_url, "model": "stand-in", **settings})
            model = OpenAIModel(endpoint, meter, environment=environment or {}, rng=random.Random(0), sleep=waits)
            try:
                result: Any = await asyncio.wait_for(ask(model, server), 20.0)
            except ModelError as error:
                result = error
            finally:
                await model.aclose()
            return result, server, waits.slept

    return asyncio.run(live())


def test_a_streamed_answer_comes_in_pieces_and_is_accounted_for() -> None:
    pieces: list[str] = []
    text = "the answer " * 100

    async def ask(model: OpenAIModel, server: Server) -> Completion:
        return await model.complete(ASK, pieces.append)

    done, server, _ = against(
        says(text, reasoning="hmm", tokens=(1000, 500)), ask=ask, price=Price(input=2.0, output=10.0)
    )
    assert done.choices[0].text == text == "".join(pieces)
    assert len(pieces) > 3
    assert done.choices[0].reasoning == "hmm"
    assert (done.tokens_in, done.tokens_out, done.estimated) == (1000, 500, False)
    assert done.cost == pytest.approx((1000 * 2.0 + 500 * 10.0) / 1e6)
    assert (done.model, done.endpoint) == ("stand-in", "stand-in")
    assert 0.0 < done.first_token_s <= done.latency_s
    assert server.requests[0]["messages"] == [{"role": "user", "content": "make it fast"}]


def test_what_is_asked_reaches_the_server() -> None:
    request = Request(
        (Message("system", "s"), Message("user", "u")),
        n=2,
        seed=7,
        temperature=0.5,
        max_tokens=99,
        stop=("END",),
        structured=Structured(schema={"type": "object"}),
        priority=3,
    )

    async def ask(model: OpenAIModel, server: Server) -> Completion:
        return await model.complete(request)

    done, server, _ = against(says("a", "b"), ask=ask, top_p=0.9, extra={"reasoning_effort": "low"})
    body = server.requests[0]
    assert [c.text for c in done.choices] == ["a", "b"]
    assert (body["n"], body["seed"], body["temperature"], body["max_tokens"]) == (2, 7, 0.5, 99)
    assert (body["stop"], body["top_p"], body["priority"], body["reasoning_effort"]) == (["END"], 0.9, 3, "low")
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_logprobs_and_token_ids_are_kept() -> None:
    async def answer(x: Exchange) -> None:
        assert x.body["logprobs"] is True and x.body["return_token_ids"] is True and "stream" not in x.body
        choice = {
            "index": 0,
            "message": {"content": "ab"},
            "finish_reason": "stop",
            "token_ids": [5, 6],
            "logprobs": {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -1.0}]},
        }
        await x.status(200, {"id": "r1", "choices": [choice], "prompt_token_ids": [1, 2, 3]})

    async def ask(model: OpenAIModel, server: Server) -> Completion:
        return await model.complete(Request(ASK.messages, logprobs=True))

    done, _, _ = against(answer, ask=ask)
    assert (done.choices[0].token_ids, done.choices[0].logprobs) == ((5, 6), (-0.5, -1.0))
    assert (done.prompt_token_ids, done.request_id, done.estimated) == ((1, 2, 3), "r1", True)


@pytest.mark.parametrize(
    "trouble",
    [
        fails(500, "oops"),
        fails(503, "overloaded", {"retry-after": "1"}),
        fails(429, "slow down", {"retry-after": "0"}),
        garbage,
        broken_json,
        half,
        half_politely,
        disconnects,
        error_in_stream,
    ],
)
def test_trouble_that_passes_is_survived(trouble: Behaviour) -> None:
    done, server, waits = against(trouble, trouble, says("fine"))
    assert done.choices[0].text == "fine"
    assert len(server.requests) == 3
    assert len(waits) == 2


@pytest.mark.parametrize(
    ("trouble", "kind", "said"),
    [
        (fails(500, "oops"), ModelUnavailable, "status 500: oops"),
        (fails(429, "slow down", {"retry-after": "0"}), RateLimited, "limits the rate (429): slow down"),
        (garbage, NoAnswer, "check that base_url"),
        (broken_json, NoAnswer, "check that base_url"),
        (half, ModelUnavailable, "broke off"),
        (half_politely, ModelUnavailable, "ended in the middle"),
        (disconnects, ModelUnavailable, "cannot be reached"),
        (error_in_stream, ModelUnavailable, "engine died"),
    ],
)
def test_trouble_that_stays_is_one_typed_line(trouble: Behaviour, kind: type[ModelError], said: str) -> None:
    error, server, waits = against(trouble, retries=2)
    assert type(error) is kind
    assert said in str(error)
    assert "\n" not in str(error)
    assert error.remedy
    assert len(server.requests) == 3
    assert len(waits) == 2


@pytest.mark.parametrize(
    ("trouble", "kind", "said"),
    [
        (fails(401, "bad key"), BadCredentials, "check the key in $OPENAI_API_KEY"),
        (fails(403, "not yours"), BadCredentials, "not yours"),
        (fails(404, "no model"), ModelRefusedRequest, "check base_url and the model 'stand-in'"),
        (fails(400, "what is this"), ModelRefusedRequest, "rejects the request (400): what is this"),
        (fails(429, "x", code="insufficient_quota"), ModelUnavailable, "quota is used up"),
    ],
)
def test_what_asking_again_cannot_mend_is_said_at_once(trouble: Behaviour, kind: type[ModelError], said: str) -> None:
    error, server, _ = against(trouble)
    assert type(error) is kind
    assert said in str(error)
    assert len(server.requests) == 1


def test_no_server_at_all() -> None:
    error, _, waits = against(says("x"), base_url="http://127.0.0.1:9/v1", retries=1)
    assert type(error) is ModelUnavailable
    assert "start the server, or correct base_url" in str(error)
    assert len(waits) == 1


def test_a_silent_server_is_given_up() -> None:
    error, server, _ = against(silent, first_token_s=0.05, retries=1)
    assert type(error) is ModelUnavailable
    assert "silent for too long" in str(error)
    assert len(server.requests) == 2


def test_a_stalled_stream_is_given_up() -> None:
    async def stalls(x: Exchange) -> None:
        await x.begin_stream()
        await x.delta(content="and then")
        await silent(x)

    error, _, _ = against(stalls, stall_s=0.05, retries=0)
    assert type(error) is ModelUnavailable


def test_the_wait_a_server_asks_for_is_kept_by_all() -> None:
    async def ask(model: OpenAIModel, server: Server) -> list[Completion]:
        return list(await asyncio.gather(*(model.complete(ASK) for _ in range(4))))

    limit = fails(429, "slow", {"retry-after-ms": "40"})
    done, server, waits = against(limit, says("fine"), ask=ask, concurrency=4)
    assert [c.choices[0].text for c in done] == ["fine"] * 4
    assert len(server.requests) == 5
    assert 0.04 <= waits[0] < 1.1


def test_no_more_requests_at_once_than_allowed() -> None:
    async def ask(model: OpenAIModel, server: Server) -> list[Completion]:
        return list(await asyncio.gather(*(model.complete(ASK) for _ in range(9))))

    done, server, _ = against(says("fine"), ask=ask, concurrency=3)
    assert len(done) == 9
    assert server.most_at_once <= 3


def test_200k_tokens_are_cut_and_not_read_to_the_end() -> None:
    done, _, _ = against(endless(200_000), max_tokens=1000)
    assert done.choices[0].finish == "length"
    assert len(done.choices[0].text) == 10_000
    assert done.estimated


def test_a_retry_says_that_the_answer_starts_afresh() -> None:
    pieces: list[str] = []

    async def ask(model: OpenAIModel, server: Server) -> Completion:
        return await model.complete(ASK, pieces.append)

    against(half, says("whole"), ask=ask)
    assert "".join(pieces[pieces.index("") :]) == "whole"


@pytest.mark.parametrize(
    ("complaint", "body", "field"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", {}, "max_tokens"),
        ("'temperature' does not support 0.8 with this model", {"temperature": 0.8}, "temperature"),
        ("Unrecognized request argument supplied: stream_options", {}, "stream_options"),
    ],
)
def test_a_parameter_that_a_server_does_not_take_is_given_up_once(
    complaint: str, body: dict[str, Any], field: str
) -> None:
    async def ask(model: OpenAIModel, server: Server) -> list[Completion]:
        return [await model.complete(ASK), await model.complete(ASK)]

    done, server, waits = against(fails(400, complaint), says("fine"), ask=ask, **body)
    assert [c.choices[0].text for c in done] == ["fine", "fine"]
    assert [field in r for r in server.requests] == [True, False, False]
    assert waits == []
    if field == "max_tokens":
        assert server.requests[1]["max_completion_tokens"] == server.requests[0]["max_tokens"]


@pytest.mark.parametrize("first", [says("only one"), fails(400, "'n' must be 1")])
def test_a_server_that_gives_one_answer_a_request_is_asked_several_times(first: Behaviour) -> None:
    async def ask(model: OpenAIModel, server: Server) -> Completion:
        return await model.complete(Request(ASK.messages, n=3, seed=10))

    done, server, _ = against(first, says("one"), ask=ask)
    assert len(done.choices) == 3
    assert len({r["seed"] for r in server.requests if r.get("n", 1) == 1}) >= 2


def test_of_several_answers_those_that_came_are_kept() -> None:
    async def ask(model: OpenAIModel, server: Server) -> Completion:
        return await model.complete(Request(ASK.messages, n=3))

    done, _, _ = against(says("one"), half, says("two"), fails(500), ask=ask, retries=0)
    assert sorted(c.text for c in done.choices) in (["one"], ["one", "two"])
    done, _, _ = against(says("one"), fails(500), ask=ask, retries=0)
    assert [c.text for c in done.choices] == ["one"]


def test_what_a_broken_try_cost_is_told() -> None:
    done, _, _ = against(half, says("whole"), price=Price(input=3.0, output=3.0))
    assert done.wasted_tokens > 0 and done.wasted_cost == pytest.approx(done.wasted_tokens * 3e-6)
    error, _, _ = against(half, retries=1, price=Price(input=3.0, output=3.0))
    assert error.wasted_tokens == 2 * done.wasted_tokens


def test_a_prompt_that_is_too_long_loses_what_matters_least() -> None:
    async def picky(x: Exchange) -> None:
        sent = sum(len(m["content"]) for m in x.body["messages"]) // 3 + x.body["max_tokens"]
        if sent > 2000:
            message = f"This model's maximum context length is 2000 tokens. However, you requested {sent} tokens"
            await x.status(400, {"error": {"message": message}})
        else:
            await says("fits")(x)

    text = "the task\n" + optional(1, "exemplars", "e" * 900) + optional(2, "failures", "f" * 6000) + "the end"

    async def ask(model: OpenAIModel, server: Server) -> Completion:
        return await model.complete(Request((Message("user", text),), max_tokens=1000))

    done, server, _ = against(picky, ask=ask)
    sent = server.requests[-1]["messages"][0]["content"]
    assert done.choices[0].text == "fits"
    assert "eee" in sent and "fff" not in sent
    assert "left out to fit the context: failures" in sent
    assert sent.startswith("the task") and sent.endswith("the end")


def test_a_prompt_that_can_never_fit_is_refused() -> None:
    async def ask(model: OpenAIModel, server: Server) -> Completion:
        return await model.complete(Request((Message("user", "x" * 9000),)))

    error, server, _ = against(says("x"), ask=ask, context=2000)
    assert type(error) is ContextTooLong
    assert server.requests == []


@pytest.mark.parametrize(
    ("caps", "cap"),
    [
        (Caps(tokens=10_000), "tokens"),
        (Caps(money=0.02), "money"),
        (Caps(requests=3), "requests"),
    ],
)
def test_hard_caps_end_it_and_are_never_passed(caps: Caps, cap: str) -> None:
    meter = Meter(caps)
    request = Request((Message("user", "x" * 1500),))

    async def ask(model: OpenAIModel, server: Server) -> list[Any]:
        return list(await asyncio.gather(*(model.complete(request) for _ in range(40)), return_exceptions=True))

    results, server, _ = against(
        says("y", tokens=(500, 300)), ask=ask, meter=meter, max_tokens=800, price=Price(input=2.0, output=4.0)
    )
    errors = [r for r in results if isinstance(r, CapReached)]
    assert errors and {e.cap for e in errors} == {cap}
    assert len(errors) + len(server.requests) == 40
    assert len(server.requests) >= 3
    assert meter.spent.tokens <= (caps.tokens or 1e9)
    assert meter.spent.money <= (caps.money or 1e9)
    assert meter.spent.requests <= (caps.requests or 1e9)


@pytest.mark.parametrize(
    ("behaviour", "finish", "text"),
    [
        (says("I cannot", finish="content_filter"), "refusal", "I cannot"),
        (says("cut", finish="length"), "length", "cut"),
        (says("", reasoning="thinking", finish="length"), "length", ""),
        (says("<think>deep</think>\nthe code"), "stop", "the code"),
        (says("deep\n</think>\nthe code"), "stop", "the code"),
    ],
)
def test_refusals_cut_answers_and_thoughts_are_told_apart(behaviour: Behaviour, finish: str, text: str) -> None:
    done, _, _ = against(behaviour)
    assert (done.choices[0].finish, done.choices[0].text) == (finish, text)


def test_an_explicit_refusal_is_one() -> None:
    async def refuses(x: Exchange) -> None:
        await x.begin_stream()
        await x.delta(refusal="I will not")
        await x.delta(finish="stop")
        await x.end_stream()

    done, _, _ = against(refuses)
    assert (done.choices[0].finish, done.choices[0].text) == ("refusal", "I will not")


def test_the_key_comes_from_the_environment_and_is_in_no_message() -> None:
    secret = "sk-verysecret123"
    environment = {"MY_KEY": secret}
    error, server, _ = against(
        fails(401, f"Incorrect API key provided: {secret}"), environment=environment, key_env="MY_KEY"
    )
    assert server.headers[0]["authorization"] == f"Bearer {secret}"
    assert secret not in str(error)


def test_a_distant_endpoint_without_its_key_is_refused_before_anything_is_sent() -> None:
    endpoint = Endpoint(base_url="https://example.invalid/v1", model="m")
    with pytest.raises(BadCredentials, match="OPENAI_API_KEY holds no key"):
        OpenAIModel(endpoint, environment={})


def test_a_plain_function_over_a_model() -> None:
    async def ask(model: OpenAIModel, server: Server) -> str:
        return await ask_with(model)("is it honest?")

    answer, server, _ = against(says("yes"), ask=ask)
    assert answer == "yes"
    assert server.requests[0]["temperature"] == 0.0
