from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.engine.llm.server import Server, says, serving
from tests.engine.policies.llm.briefing import Told, brief, scored
from tests.engine.policies.llm.kernels import KERNEL, answer

from workbench_engine.llm.recording import RECORDED
from workbench_engine.llm.settings import Endpoint, LlmSettings
from workbench_engine.policies.contract import Context, NothingUsable, Outcome, Proposal
from workbench_engine.policies.llm.policy import LlmPolicy
from workbench_engine.policies.llm_points import PointsPolicy, point_of, schema_of
from workbench_engine.policies.registry import make_policy
from workbench_engine.tasks.catalogue import bundled_names, bundled_space
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel
from workbench_sessions.events import ExchangeRecorded, PromptSent, ResponseReceived, WarningRaised

SPACE = bundled_space("softmax_rows")
assert SPACE is not None


def encoded(space: DesignSpace, seed: int) -> str:
    return msgspec.json.encode(space.sample(random.Random(seed)).values).decode()


@pytest.mark.parametrize("name", bundled_names())
def test_the_schema_admits_every_value_and_nothing_else(name: str) -> None:
    space = bundled_space(name)
    if space is None:
        return
    schema = schema_of(space)
    assert list(schema["properties"]) == [d.name for d in space.dimensions] == schema["required"]
    assert schema["additionalProperties"] is False
    for d in space.dimensions:
        assert schema["properties"][d.name]["enum"] == list(d.values)
    json.dumps(schema)


@given(st.integers(0, 2**32))
def test_every_point_comes_back_from_its_json(seed: int) -> None:
    assert SPACE is not None
    point = SPACE.sample(random.Random(seed))
    assert point_of(SPACE, f" {msgspec.json.encode(point.values).decode()}\n") == point


@given(st.one_of(st.text(max_size=60), st.builds(json.dumps, st.recursive(st.integers() | st.text(), st.lists))))
def test_whatever_is_no_point_is_one_line(text: str) -> None:
    assert SPACE is not None
    with pytest.raises(ValueError) as caught:
        point_of(SPACE, text)
    assert "\n" not in str(caught.value)


def test_one_is_not_true_and_mixed_values_have_no_type() -> None:
    dims = (Dimension("d", "loops", (1, True, "x"), ""), Dimension("b", "loops", (True, False), ""))
    space = DesignSpace("t", dims, lambda v: Kernel("", ()), {"d": 1, "b": True})
    assert "type" not in schema_of(space)["properties"]["d"]
    assert schema_of(space)["properties"]["b"] == {"type": "boolean", "enum": [True, False]}
    assert point_of(space, '{"d": true, "b": false}').values["d"] is True
    assert point_of(space, '{"d": 1, "b": false}').values["d"] is not True
    with pytest.raises(ValueError, match="b = 1"):
        point_of(space, '{"d": 1, "b": 1}')


Work = Callable[[Any], Awaitable[Any]]


def against(server_texts: tuple[str, ...], work: Work, policy: Any = None, **settings: Any) -> tuple[Any, Server, Told]:
    async def live() -> tuple[Any, Server, Told]:
        told = Told()
        async with serving(says(*server_texts)) as server:
            assert SPACE is not None
            made = policy or PointsPolicy(SPACE)
            made.brief(brief(told, LlmSettings(base_url=server.base_url, model="m", retries=0, **settings)))
            try:
                result: Any = await asyncio.wait_for(work(made), 20.0)
            except Exception as error:
                result = error
            finally:
                await made.aclose()
            return result, server, told

    return asyncio.run(live())


def test_answers_become_points_and_exemplars_are_shown_as_points() -> None:
    assert SPACE is not None
    texts = (encoded(SPACE, 1), encoded(SPACE, 2), "not a point")
    shown = replace(scored("c1", "text", 1.5), point=SPACE.sample(random.Random(9)))
    person = scored("c2", KERNEL, 3.0)

    async def work(policy: PointsPolicy) -> list[Proposal]:
        return await policy.propose(Context("softmax_rows", 1, 0, exemplars=(shown, person)), 3)

    proposals, server, told = against(texts, work, n=3, logprobs=True)
    assert [p.point for p in proposals] == [point_of(SPACE, t) for t in texts[:2]]
    assert proposals[0].text == SPACE.render(point_of(SPACE, texts[0])).text()
    assert (proposals[0].origin.patch, proposals[0].parents) == ("point", ("c1",))
    body = server.requests[0]
    assert body["response_format"]["json_schema"]["schema"] == schema_of(SPACE)
    assert body["logprobs"] is True and body["return_token_ids"] is True and body["n"] == 3
    prompt = body["messages"][-1]["content"]
    assert "Speedup 1.50" in prompt and "Speedup 3.00" not in prompt and "column_block" in prompt
    assert [e.candidate for e in told.of(PromptSent)[0].exemplars] == ["c1"]
    assert "not JSON" in told.of(ResponseReceived)[2].problem


def test_no_point_at_all_is_told_and_not_asked_for_again() -> None:
    async def work(policy: PointsPolicy) -> list[Proposal]:
        return await policy.propose(Context("softmax_rows", 1, 0), 1)

    result, server, _ = against(("{}",), work)
    assert isinstance(result, NothingUsable) and "missing" in str(result) and len(server.requests) == 1


def test_a_run_is_done_again_from_what_it_recorded(tmp_path: Path) -> None:
    async def work(policy: LlmPolicy) -> list[Proposal]:
        return await policy.propose(Context("t", 1, 0), 1)

    first, _, told = against((answer(KERNEL),), work, LlmPolicy())
    assert len(told.of(ExchangeRecorded)) == 1
    from workbench_engine.llm.recording import unpacked

    (event,) = told.of(ExchangeRecorded)
    (tmp_path / "traffic.jsonl").write_bytes(msgspec.json.encode(unpacked(event, told.texts.__getitem__)) + b"\n")

    async def again() -> tuple[list[Proposal], Told]:
        policy, said = LlmPolicy(), Told()
        policy.brief(brief(said, LlmSettings(replay=str(tmp_path / "traffic.jsonl"))))
        try:
            return await work(policy), said
        finally:
            await policy.aclose()

    second, said = asyncio.run(again())
    assert [p.text for p in second] == [p.text for p in first]
    assert said.of(ResponseReceived)[0].endpoint == RECORDED and not said.of(ExchangeRecorded)
    assert "no model is asked" in said.of(WarningRaised)[0].text


def test_several_endpoints_are_credited_with_what_they_gained() -> None:
    async def live() -> tuple[Any, bytes]:
        told = Told()
        async with serving(says(answer(KERNEL))) as server:
            both = {n: Endpoint(base_url=server.base_url, model=n, retries=0) for n in ("a", "b")}
            policy = LlmPolicy()
            policy.brief(brief(told, LlmSettings(endpoints=both)))
            for group in (1, 2):
                context = Context("t", group, 0)
                (made,) = await policy.propose(context, 1)
                won = made.origin.model == "a"
                outcome = Outcome(made.sample, 0.0, won, 2.0 if won else None)
                await policy.learn(context, [outcome])
            run = policy._run
            assert run is not None and run.router is not None
            arms, state = run.router.arms, policy.state()
            await policy.aclose()
            return arms, state

    arms, state = asyncio.run(live())
    by_name = {arm.name: arm for arm in arms}
    assert by_name["a"].mean == pytest.approx(1.0) and by_name["b"].mean == 0.0
    assert by_name["a"].completed == by_name["b"].completed == 1
    LlmPolicy().restore(state)


def test_the_registry_knows_them() -> None:
    assert make_policy("vllm", SPACE, 0).name == "vllm" and make_policy("llm-points", SPACE, 0).name == "llm-points"
    with pytest.raises(ValueError, match="design space"):
        make_policy("llm-points", None, 0)
    told = Told()
    with pytest.raises(ValueError, match="--answers points"):
        policy: Any = make_policy("llm", None, 0)
        policy.brief(brief(told, LlmSettings(base_url="http://localhost:1/v1", model="m", answers="points")))
