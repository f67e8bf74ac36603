from __future__ import annotations

import asyncio
import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.llm.contract import Choice, Completion, Message, OnChunk, Request
from workbench_engine.llm.recording import (
    RECORDED,
    NotRecorded,
    RecordingModel,
    RecordingProblem,
    TrafficFile,
    keep_with,
    packed,
    read_traffic,
    replay_of,
    request_key,
    unpacked,
)
from workbench_sessions.events import ExchangeRecorded
from workbench_sessions.log import SessionWriter


class Counting:
    """Answers with a number that grows, so that equal requests differ."""

    def __init__(self) -> None:
        self.asked = 0

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        self.asked += 1
        choice = Choice(f"{request.messages[0].content} {self.asked}", "thought", "stop", (1, 2), (-0.5, -1.25))
        return Completion((choice,) * request.n, tokens_in=7, tokens_out=2, cost=0.25, model="m", endpoint="e")

    async def aclose(self) -> None:
        pass


def request(text: str, seed: int | None = None) -> Request:
    return Request((Message("user", text),), seed=seed)


def record(path: Path, requests: list[Request]) -> list[Completion]:
    async def ask() -> list[Completion]:
        model = RecordingModel(Counting(), TrafficFile(path).keep)
        return [await model.complete(one) for one in requests]

    return asyncio.run(ask())


def test_a_replay_gives_the_same_answers_in_any_order_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "traffic.jsonl"
    requests = [request(f"q{i}", i) for i in range(20)]
    recorded = record(path, requests)
    order = list(range(20))
    random.Random(3).shuffle(order)
    pieces: list[str] = []

    async def again() -> dict[int, Completion]:
        model = replay_of(path, "content")
        return {i: await model.complete(requests[i], pieces.append) for i in order}

    got = asyncio.run(again())
    for i, before in enumerate(recorded):
        assert got[i].choices == before.choices and got[i].endpoint == RECORDED and got[i].cost == 0.0
    assert len(pieces) == 20


def test_equal_requests_get_their_answers_in_turn_and_then_the_last(tmp_path: Path) -> None:
    path = tmp_path / "traffic.jsonl"
    record(path, [request("same")] * 2)

    async def again() -> list[str]:
        model = replay_of(path, "content")
        return [(await model.complete(request("same"))).choices[0].text for _ in range(3)]

    assert asyncio.run(again()) == ["same 1", "same 2", "same 2"]


def test_a_missing_request_says_what_to_do_and_the_seed_alone_finds_it(tmp_path: Path) -> None:
    path = tmp_path / "traffic.jsonl"
    record(path, [request("measured 1.53", seed=11)])
    with pytest.raises(NotRecorded, match=r"traffic\.jsonl has no answer to this request among its 1.*seed"):
        asyncio.run(replay_of(path, "content").complete(request("measured 1.51", seed=11)))
    assert asyncio.run(replay_of(path, "seed").complete(request("measured 1.51", seed=11))).choices
    with pytest.raises(NotRecorded, match="not longer"):
        asyncio.run(replay_of(path, "seed").complete(request("measured 1.51", seed=12)))


def test_half_a_line_of_a_killed_writer_is_left_out_and_swallows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "traffic.jsonl"
    record(path, [request("a")])
    with path.open("ab") as file:
        file.write(b'{"request": "abc", "n": 1, "se')
    record(path, [request("b")])
    assert {e.request for e in read_traffic(path)} == {request_key(request("a")), request_key(request("b"))}


@pytest.mark.parametrize("text", ["", '{"request": 3}\n'])
def test_a_file_that_is_no_recording_is_one_clear_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(RecordingProblem, match=r"x\.jsonl"):
        read_traffic(path)
    with pytest.raises(RecordingProblem, match="cannot be read"):
        read_traffic(tmp_path / "absent")


def test_a_session_holds_its_traffic_and_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "run.wb"
    writer = SessionWriter.create(path, "{}")

    def say(event: ExchangeRecorded, texts: object) -> None:
        assert isinstance(texts, dict)
        for text in texts.values():
            writer.put_source(text)
        writer.append([event])

    async def ask() -> Completion:
        return await RecordingModel(Counting(), keep_with(say)).complete(request("in a session", 5))

    recorded = asyncio.run(ask())
    writer.close()
    assert asyncio.run(replay_of(path, "content").complete(request("in a session", 5))).choices == recorded.choices


def test_priority_is_not_content_and_everything_else_is() -> None:
    one = request("x", 1)
    assert request_key(one) == request_key(msgspec.structs.replace(one, priority=3))
    for change in ({"seed": 2}, {"n": 2}, {"temperature": 0.5}, {"logprobs": True}, {"stop": ("a",)}):
        assert request_key(one) != request_key(msgspec.structs.replace(one, **change))


texts = st.text(st.characters(codec="utf-8"), max_size=40)
choices = st.builds(
    Choice,
    text=texts,
    reasoning=texts,
    finish=st.sampled_from(["stop", "length", "refusal", "other"]),
    token_ids=st.lists(st.integers(0, 2**31), max_size=3).map(tuple),
    logprobs=st.lists(st.floats(-100, 0), max_size=3).map(tuple),
)


@given(st.lists(choices, min_size=1, max_size=4), texts)
def test_packing_loses_nothing(made: list[Choice], prompt: str) -> None:
    done = Completion(tuple(made), tokens_in=3, cost=None, prompt_token_ids=(4, 5), first_token_s=0.5)
    event, stored = packed(request(prompt, 9), done)
    back = unpacked(event, stored.__getitem__)
    assert (back.completion, back.request, back.seed) == (done, request_key(request(prompt, 9)), 9)
