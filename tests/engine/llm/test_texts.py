from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.llm.adapting import Quirks, context_limit, context_overflow, learned
from workbench_engine.llm.contract import Message
from workbench_engine.llm.gathering import Gathering, split_thinking
from workbench_engine.llm.settings import Endpoint, LlmSettings, Price, endpoints_of
from workbench_engine.llm.shortening import LEAST_ANSWER, MARGIN, characters, fitted, optional, shortened, unmarked

PLAIN = st.text(st.characters(exclude_characters="<>\r", exclude_categories=["Cs"]), max_size=60)


@given(pieces=st.lists(st.tuples(PLAIN, PLAIN), max_size=20), limit=st.integers(1, 300))
def test_pieces_make_the_whole_up_to_the_cap(pieces: list[tuple[str, str]], limit: int) -> None:
    gathering = Gathering(limit)
    for text, reasoning in pieces:
        gathering.add(text, reasoning)
    choice = gathering.choice()
    text, reasoning = "".join(t for t, _ in pieces), "".join(r for _, r in pieces)
    assert text.startswith(choice.text) and reasoning.startswith(choice.reasoning)
    assert len(choice.text) + len(choice.reasoning) == min(limit, len(text) + len(reasoning))
    assert (choice.finish == "length") == (len(text) + len(reasoning) >= limit)


@given(thought=PLAIN, answer=PLAIN)
def test_thoughts_come_apart(thought: str, answer: str) -> None:
    for said in (f"<think>{thought}</think>{answer}", f"{thought}</think>{answer}"):
        assert split_thinking(said) == (thought.strip(), answer.lstrip())
    assert split_thinking(f"<think>{thought}") == (thought.strip(), "")
    assert split_thinking(answer) == ("", answer)


def test_an_answer_may_quote_the_tag() -> None:
    text = "## Code\n```cpp\n// </think> is only quoted\n```"
    assert split_thinking(text) == ("", text)


MESSAGES = (Message("user", "task\n" + optional(2, "b", "B" * 400) + optional(1, "a", "A" * 400) + "end"),)


def test_parts_go_in_the_order_of_their_importance() -> None:
    once = shortened(MESSAGES)
    assert once is not None
    assert "B" * 9 not in unmarked(once)[0].content and "A" * 400 in unmarked(once)[0].content
    twice = shortened(once)
    assert twice is not None
    assert "A" * 9 not in unmarked(twice)[0].content
    assert shortened(twice) is None
    assert unmarked(twice)[0].content.startswith("task\n") and unmarked(twice)[0].content.endswith("end")


def test_marks_are_never_sent() -> None:
    assert unmarked(MESSAGES)[0].content == "task\n" + "B" * 400 + "\n" + "A" * 400 + "\nend"


@given(context=st.integers(1, 3000), answer=st.integers(1, 3000))
def test_what_fits_fits(context: int, answer: int) -> None:
    found = fitted(MESSAGES, answer, context, lambda n: n // 3 + 1)
    if found is None:
        assert characters(MESSAGES) // 3 + LEAST_ANSWER + MARGIN > context - 300
    else:
        messages, tokens = found
        assert tokens <= answer
        assert characters(messages) // 3 + 1 + tokens + MARGIN <= context


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ("This model's maximum context length is 4096 tokens. However, you requested 5000", 4096),
        ("the request exceeds the available context size (8192 tokens)", 8192),
        ("prompt is too long: 210000 tokens > 200000 maximum", None),
        ("Input is too long for requested model.", None),
    ],
)
def test_context_errors_are_known(said: str, limit: int | None) -> None:
    assert context_overflow(said)
    assert context_limit(said) == limit


@pytest.mark.parametrize("said", ["bad model", "invalid temperature", "rate limit reached", "no context given"])
def test_other_errors_are_no_context_errors(said: str) -> None:
    assert not context_overflow(said)


@given(st.text(max_size=200))
def test_learning_never_goes_in_circles(said: str) -> None:
    body = {"max_tokens": 9, "temperature": 1.0, "seed": 3, "n": 4, "stop": ["x"], "stream_options": {}}
    quirks = Quirks()
    for _ in range(12):
        new = learned(quirks, quirks.applied(body), said)
        if new is None:
            break
        assert new != quirks
        quirks = new


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base_url": "localhost:8000"}, "is no address"),
        ({"base_url": "http://user:pw@host/v1"}, "holds a password"),
        ({"model": ""}, "no model is named"),
        ({"concurrency": 0}, "at least 1"),
        ({"stall_s": 0.0}, "stall_s"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_refused_in_one_line(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        Endpoint(**{"base_url": "http://localhost/v1", "model": "m", **settings})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_endpoints_take_the_settings_and_the_prices() -> None:
    price = Price(input=1.0, output=2.0)
    (only,) = endpoints_of(LlmSettings(base_url="http://h/v1", model="m", max_tokens=5, prices={"m": price}))
    assert (only.max_tokens, only.price, only.label) == (5, price, "m")
    named = LlmSettings(endpoints={"fast": Endpoint(base_url="http://h/v1", model="m")}, prices={"m": price})
    assert [(e.label, e.price) for e in endpoints_of(named)] == [("fast", price)]
    with pytest.raises(ValueError, match="--base-url"):
        endpoints_of(LlmSettings())


@pytest.mark.parametrize("wrong", [{"exemplars": 5}, {"n": 0}, {"money": -1.0}])
def test_settings_out_of_range_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"llm.{next(iter(wrong))}"):
        LlmSettings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pieces", "text"),
    [(("a\ud83d", "\ude80b"), "a🚀b"), (("a\ud83d", "b"), "a\ufffdb"), (("\ude80",), "\ufffd"), (("é", "🚀"), "é🚀")],
)
def test_a_character_that_a_server_cut_in_two_is_one_again(pieces: tuple[str, ...], text: str) -> None:
    gathering = Gathering(100)
    for piece in pieces:
        gathering.add(text=piece, reasoning=piece)
    choice = gathering.choice()
    assert choice.text == text
    # Every log keeps it as UTF-8.
    assert choice.text.encode() and choice.reasoning.encode()
