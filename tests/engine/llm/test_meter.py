from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.llm.cost import cost_of, estimated_tokens
from workbench_engine.llm.errors import CapReached
from workbench_engine.llm.meter import LEAST_ANSWER, Caps, Meter, Spent
from workbench_engine.llm.settings import Price

REQUESTS = st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 4000), st.floats(0, 1)), min_size=1, max_size=30)


@given(requests=REQUESTS, tokens=st.integers(0, 20_000), money=st.floats(0, 0.1), seed=st.integers(0, 99))
def test_no_interleaving_passes_a_cap(
    requests: list[tuple[int, int, float]], tokens: int, money: float, seed: int
) -> None:
    price = Price(input=2.0, output=8.0)
    meter = Meter(Caps(tokens=tokens, money=money))
    rng = random.Random(seed)

    async def one(tokens_in: int, answer: int, share: float) -> None:
        try:
            hold = await meter.reserve(tokens_in, answer, price)
        except CapReached:
            return
        assert hold.answer_tokens <= answer
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)
        meter.settle(hold, tokens_in, int(share * hold.answer_tokens))

    async def live() -> None:
        await asyncio.wait_for(asyncio.gather(*(one(*r) for r in requests)), 10.0)

    asyncio.run(live())
    assert meter.spent.tokens <= tokens
    assert meter.spent.money <= money + 1e-9


def test_an_answer_is_cut_to_what_is_left() -> None:
    async def live() -> int:
        return (await Meter(Caps(tokens=1500)).reserve(1000, 4000)).answer_tokens

    assert asyncio.run(live()) == 500


def test_too_little_is_left() -> None:
    async def live() -> None:
        await Meter(Caps(tokens=1000 + LEAST_ANSWER - 1)).reserve(1000, 4000)

    with pytest.raises(CapReached, match="do not pay for another request"):
        asyncio.run(live())


def test_who_does_not_fit_waits_for_those_in_flight() -> None:
    meter = Meter(Caps(tokens=3000))
    order: list[str] = []

    async def live() -> None:
        first = await meter.reserve(500, 2000)
        second = asyncio.create_task(meter.reserve(500, 2000))
        await asyncio.sleep(0)
        order.append(f"waiting {not second.done()}")
        meter.settle(first, 500, 100)
        hold = await second
        order.append(str(hold.answer_tokens))

    asyncio.run(live())
    # 3000 - 600 spent - 500 for the prompt.
    assert order == ["waiting True", "1900"]


def test_time_and_what_earlier_engines_spent_count() -> None:
    now = [100.0]
    meter = Meter(Caps(seconds=60.0, requests=5), Spent(requests=4), lambda: now[0])

    async def live() -> None:
        await meter.reserve(1, 300)

    asyncio.run(live())
    with pytest.raises(CapReached, match="5 requests are spent"):
        asyncio.run(live())
    meter.caps = Caps(seconds=60.0)
    now[0] = 161.0
    with pytest.raises(CapReached, match="61 s are spent"):
        asyncio.run(live())


def test_cached_tokens_have_their_own_price_and_unknown_models_none() -> None:
    assert cost_of(Price(input=2.0, output=8.0, cached=0.5), 1_000_000, 500_000, 400_000) == pytest.approx(
        0.6 * 2.0 + 0.4 * 0.5 + 4.0
    )
    assert cost_of(Price(input=2.0, output=8.0), 1_000_000, 0, 400_000) == pytest.approx(2.0)
    assert cost_of(None, 10, 10) is None


@given(st.integers(0, 10**6))
def test_estimates_are_never_too_low_for_three_characters_a_token(count: int) -> None:
    assert 3 * estimated_tokens(count) >= count
