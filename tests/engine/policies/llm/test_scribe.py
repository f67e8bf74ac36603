from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.policies.llm.briefing import Told

from workbench_engine.llm.contract import Choice, Completion, Message
from workbench_engine.llm.errors import ModelUnavailable
from workbench_engine.policies.llm.answers import Answer
from workbench_engine.policies.llm.extract import Sections
from workbench_engine.policies.llm.planning import Plan
from workbench_engine.policies.llm.scribe import PIECES_S, SHARED_S, Hearing, Scribe
from workbench_sessions.events import PromptSent, ResponseReceived, ResponseStreamed

ASKED = (Message("user", "go"),)


def hearings(told: Told, now: list[float], count: int = 1, prompts: int = 0) -> list[Hearing]:
    scribe = Scribe(told.say, prompts, lambda: now[0])
    return [scribe.sent(ASKED, Plan("full"), model="m", endpoint="e", group=i, n=1) for i in range(count)]


@given(
    pieces=st.lists(st.tuples(st.text(min_size=1, max_size=9), st.floats(0, 0.2)), max_size=60),
    count=st.integers(1, 64),
)
def test_pieces_are_told_seldom_and_completely(pieces: list[tuple[str, float]], count: int) -> None:
    told, now = Told(), [0.0]
    hearing = hearings(told, now, count)[0]
    for text, wait_s in pieces:
        now[0] += wait_s
        hearing.chunk(text)
    hearing.answered(Completion((Choice("x"),)), [Answer(Sections(), "code")])
    streamed = told.of(ResponseStreamed)
    assert "".join(e.text for e in streamed) == "".join(t for t, _ in pieces)
    assert len(streamed) <= now[0] / max(PIECES_S, SHARED_S * count) + 1


def test_a_fresh_start_replaces_what_was_streamed() -> None:
    told, now = Told(), [0.0]
    hearing = hearings(told, now)[0]
    for text in ("half ", "of it", "", "whole"):
        now[0] += 1.0
        hearing.chunk(text)
    assert [(e.text, e.restart) for e in told.of(ResponseStreamed)] == [
        ("half ", False),
        ("of it", False),
        ("whole", True),
    ]


def test_prompts_are_numbered_after_those_of_earlier_engines() -> None:
    told = Told()
    assert [h.name for h in hearings(told, [0.0], 2, prompts=41)] == ["p00042", "p00043"]
    assert [e.prompt for e in told.of(PromptSent)] == ["p00042", "p00043"]


def test_what_failed_tries_cost_is_told_once() -> None:
    told = Told()
    first, second = hearings(told, [0.0], 2)
    done = Completion(
        (Choice("a"), Choice("b")), tokens_in=9, tokens_out=4, cost=0.5, wasted_tokens=7, wasted_cost=0.25
    )
    first.answered(done, [Answer(Sections(), "x"), Answer(Sections(), "y")])
    error = ModelUnavailable("gone", "start it")
    error.wasted_tokens, error.wasted_cost = 3, 0.125
    second.failed(error)
    received = told.of(ResponseReceived)
    assert sum((e.tokens_in or 0) + (e.tokens_out or 0) + e.wasted_tokens for e in received) == 9 + 4 + 7 + 3
    assert sum((e.cost or 0.0) + e.wasted_cost for e in received) == 0.875
    assert received[-1].problem == "gone; start it" and received[-1].finish == "failed"
