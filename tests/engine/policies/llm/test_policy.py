from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.llm.server import Behaviour, Server, endless, fails, garbage, says, serving
from tests.engine.policies.llm.briefing import Told, brief, scored
from tests.engine.policies.llm.kernels import KERNEL, answer

from workbench_engine.llm.settings import LlmSettings, PatchWeights, Price
from workbench_engine.policies.contract import (
    Context,
    NothingUsable,
    Outcome,
    PolicyFailed,
    PolicySpent,
    PolicyUnavailable,
    Proposal,
)
from workbench_engine.policies.llm.manual import manual_policy
from workbench_engine.policies.llm.policy import LlmPolicy
from workbench_engine.policies.registry import make_policy
from workbench_sessions.events import Budget, PromptSent, ResponseReceived, ResponseStreamed, WarningRaised

OTHER = KERNEL.replace("2.0f", "3.0f")
EXEMPLARS = (scored("c1", KERNEL, 0.8), scored("c2", OTHER, 1.9))
Work = Callable[[LlmPolicy, Server], Awaitable[Any]]


async def once(policy: LlmPolicy, server: Server) -> list[Proposal]:
    return await policy.propose(Context("t", 1, 0), 4)


def against(*script: Behaviour, work: Work = once, **settings: Any) -> tuple[Any, Server, Told]:
    """What `work` gave (or the exception it raised), the server, and what the policy said."""

    async def live() -> tuple[Any, Server, Told]:
        told = Told()
        async with serving(*script) as server:
            policy = LlmPolicy()
            given = {"base_url": server.base_url, "model": "stand-in", "retries": 0, **settings}
            policy.brief(brief(told, LlmSettings(**given)))
            try:
                result = await asyncio.wait_for(work(policy, server), 20.0)
            except Exception as error:
                result = error
            finally:
                await policy.aclose()
            return result, server, told

    return asyncio.run(live())


def test_an_answer_becomes_a_proposal_and_everything_is_told() -> None:
    proposals, _, told = against(
        says(answer(KERNEL), reasoning="let me think", tokens=(900, 80)), prices={"stand-in": Price(input=1, output=2)}
    )
    (proposal,) = proposals
    assert (proposal.kind, proposal.text, proposal.note) == ("kernel", KERNEL, "One pass.")
    assert (proposal.origin.policy, proposal.origin.model) == ("llm", "stand-in")
    assert (proposal.origin.patch, proposal.origin.prompt, proposal.origin.answer) == ("full", "p00001", 0)
    (sent,), (received,) = told.of(PromptSent), told.of(ResponseReceived)
    assert (sent.prompt, sent.patch, sent.group) == ("p00001", "full", 1)
    assert "class Model" in told.texts[sent.text_sha256]
    assert told.texts[received.text_sha256] == answer(KERNEL)
    assert told.texts[received.reasoning_sha256] == "let me think"
    assert (received.analysis, received.design, received.problem) == ("Memory bound.", "One pass.", "")
    assert (received.tokens_in, received.tokens_out, received.cost) == (900, 80, pytest.approx(1060e-6))
    assert "".join(e.text for e in told.of(ResponseStreamed)) == answer(KERNEL)


def test_exemplars_with_their_scores_are_told() -> None:
    async def work(policy: LlmPolicy, server: Server) -> list[Proposal]:
        return await policy.propose(Context("t", 1, 0, exemplars=EXEMPLARS), 1)

    proposals, _, told = against(says(answer(KERNEL)), work=work, patches=PatchWeights(1, 0, 0))
    (sent,) = told.of(PromptSent)
    assert [(e.candidate, e.score, e.role) for e in sent.exemplars] == [("c1", 0.8, "slow"), ("c2", 1.9, "fast")]
    assert proposals[0].parents == ("c2",)


def test_several_answers_to_one_prompt() -> None:
    proposals, server, told = against(says(answer(KERNEL), answer(OTHER)), n=2)
    assert [p.text for p in proposals] == [KERNEL, OTHER]
    assert [p.origin.answer for p in proposals] == [0, 1]
    first, second = told.of(ResponseReceived)
    assert first.tokens_in == 100 and (second.tokens_in, second.seconds) == (0, 0.0)
    assert server.requests[0]["n"] == 2


def test_an_unreadable_answer_gets_one_more_turn() -> None:
    proposals, server, told = against(says("No code, sorry."), says(answer(KERNEL)))
    assert [p.text for p in proposals] == [KERNEL]
    assert proposals[0].origin.prompt == "p00002"
    turns = [m["role"] for m in server.requests[1]["messages"]]
    assert turns == ["system", "user", "assistant", "user"]
    assert "holds no code block" in server.requests[1]["messages"][-1]["content"]
    assert told.of(PromptSent)[1].repairs == "p00001"
    assert "no code block" in told.of(ResponseReceived)[0].problem


def test_a_second_unreadable_answer_is_believed() -> None:
    result, server, _ = against(says("No."))
    assert isinstance(result, NothingUsable) and "no code block" in str(result)
    assert len(server.requests) == 2
    result, server, _ = against(says("No."), repair=False)
    assert isinstance(result, NothingUsable) and len(server.requests) == 1


def test_a_refusal_is_not_argued_with() -> None:
    result, server, _ = against(says("I will not.", finish="content_filter"))
    assert isinstance(result, NothingUsable) and "the model refused: I will not." in str(result)
    assert len(server.requests) == 1


def test_200k_tokens_without_code_are_survived() -> None:
    result, _, told = against(endless(200_000), max_tokens=500)
    assert isinstance(result, NothingUsable) and "cut off" in str(result)
    assert all(e.finish == "length" for e in told.of(ResponseReceived))


@pytest.mark.parametrize(
    ("trouble", "kind", "said"),
    [
        (fails(500, "oops"), PolicyUnavailable, "status 500"),
        (fails(429, "slow", {"retry-after": "7"}), PolicyUnavailable, "limits the rate"),
        (garbage, PolicyUnavailable, "no usable answer"),
        (fails(401, "bad key"), PolicyFailed, "refuses the key"),
        (fails(404, "no model"), PolicyFailed, "no such model"),
    ],
)
def test_trouble_is_told_and_means_waiting_or_failing(trouble: Behaviour, kind: type[Exception], said: str) -> None:
    result, _, told = against(trouble)
    assert type(result) is kind and said in str(result)
    (received,) = told.of(ResponseReceived)
    assert received.finish == "failed" and said in received.problem
    if isinstance(result, PolicyUnavailable) and "(429)" in str(result):
        assert result.retry_after_s == 7.0


def test_a_cap_ends_it() -> None:
    async def work(policy: LlmPolicy, server: Server) -> list[Proposal]:
        context = Context("t", 1, 0, budget=Budget(tokens=6000))
        for _ in range(20):
            await policy.propose(context, 1)
        return []

    result, server, _ = against(says(answer(KERNEL), tokens=(1200, 300)), work=work, max_tokens=1000)
    assert isinstance(result, PolicySpent)
    assert 2 <= len(server.requests) <= 4


async def broken(policy: LlmPolicy, server: Server) -> list[Proposal]:
    """A candidate that did not build, and the next proposal."""
    (first,) = await policy.propose(Context("t", 1, 0), 1)
    outcome = Outcome(first.sample, -1.0, False, None, "c1", "build", "error: expected ';'")
    await policy.learn(Context("t", 1, 0), [outcome, outcome])
    (mended,) = await policy.propose(Context("t", 2, 0), 1)
    again = Outcome(mended.sample, -1.0, False, None, "c2", "build", "error: still")
    await policy.learn(Context("t", 2, 0), [again])
    (third,) = await policy.propose(Context("t", 3, 0), 1)
    return [first, mended, third]


def test_what_does_not_build_is_given_back_once() -> None:
    (_, mended, third), server, told = against(says(answer(KERNEL)), says(answer(OTHER)), work=broken)
    assert (mended.origin.patch, mended.parents) == ("repair", ("c1",))
    asked = server.requests[1]["messages"][1]["content"]
    assert "error: expected ';'" in asked and "2.0f" in asked
    assert told.of(PromptSent)[1].repairs == "c1"
    assert third.origin.patch == "full"


def test_a_repair_survives_a_crash_and_an_outage() -> None:
    async def work(policy: LlmPolicy, server: Server) -> list[Proposal]:
        (first,) = await policy.propose(Context("t", 1, 0), 1)
        await policy.learn(Context("t", 1, 0), [Outcome(first.sample, -1.0, False, None, "c1", "build", "error")])
        with pytest.raises(PolicyUnavailable):
            await policy.propose(Context("t", 2, 0), 1)
        other = LlmPolicy()
        other.restore(policy.state())
        other.brief(brief(Told(), LlmSettings(base_url=server.base_url, model="m")))
        try:
            return await other.propose(Context("t", 2, 0), 1)
        finally:
            await other.aclose()

    proposals, _, _ = against(says(answer(KERNEL)), fails(500), says(answer(OTHER)), work=work)
    assert proposals[0].origin.patch == "repair" and proposals[0].parents == ("c1",)
    assert proposals[0].sample == 2


def test_a_foreign_state_is_refused() -> None:
    with pytest.raises(ValueError, match="not of policy 'llm'"):
        LlmPolicy().restore(b"\x81\xa1x\x01")


def test_settings_that_cannot_work_are_refused_before_anything_is_asked() -> None:
    for settings, said in (
        (LlmSettings(), "--base-url"),
        (LlmSettings(base_url="https://example.invalid/v1", model="m", key_env="NO_SUCH_KEY"), "holds no key"),
        (LlmSettings(base_url="http://localhost/v1", model="m", templates="/no/such"), "is no folder"),
    ):
        with pytest.raises(ValueError, match=said):
            LlmPolicy().brief(brief(Told(), settings))


def test_a_person_answers_by_hand(tmp_path: Path) -> None:
    told = Told()

    async def live() -> list[Proposal]:
        policy = manual_policy()
        policy.brief(brief(told, LlmSettings(concurrency=8), tmp_path / "prompts"))
        assert policy.in_flight == 1
        asked = asyncio.create_task(policy.propose(Context("t", 1, 0), 1))
        while not (prompts := list((tmp_path / "prompts").glob("p00001.md"))):
            await asyncio.sleep(0.01)
        assert "kernel_run" in prompts[0].read_text()
        (tmp_path / "prompts" / "p00001.answer.cpp").write_text(KERNEL)
        return await asyncio.wait_for(asked, 10.0)

    (proposal,) = asyncio.run(live())
    assert (proposal.text, proposal.origin.policy, proposal.origin.model) == (KERNEL, "manual", "a person")
    assert "waiting for an answer" in told.of(WarningRaised)[0].text


@pytest.mark.parametrize("name", ["llm", "manual"])
def test_the_registry_makes_them_for_tasks_without_a_design_space(name: str) -> None:
    assert make_policy(name, None, 0).name == name
