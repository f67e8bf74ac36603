from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.llm.backoff import LONGEST_HINT_S, Backoff, retry_after_s
from workbench_engine.llm.pacing import RECOVER_AFTER, Bucket, Pace


@given(st.integers(0, 60), st.integers(0, 1000), st.none() | st.floats(0, 100))
def test_waits_grow_stay_bounded_and_respect_the_server(attempt: int, seed: int, hint: float | None) -> None:
    backoff = Backoff(first_s=1.0, factor=2.0, longest_s=30.0, least_s=0.1)
    delay = backoff.delay_s(attempt, random.Random(seed), hint)
    if hint is None:
        assert 0.1 <= delay <= min(30.0, 2.0**attempt)
    else:
        assert hint <= delay <= hint + 1.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "12"}, 12.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Tue, 01 Dec 2026 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 00:00:00 GMT"}, 0.0),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1e99"}, LONGEST_HINT_S),
        ({"retry-after": "nan"}, None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    found = retry_after_s(headers, datetime(2026, 12, 1, tzinfo=UTC))
    assert found is None if seconds is None else found == pytest.approx(seconds)


@given(st.text(max_size=30))
def test_no_header_is_an_exception(text: str) -> None:
    found = retry_after_s({"retry-after": text, "x-ratelimit-reset-tokens": text})
    assert found is None or 0.0 <= found <= LONGEST_HINT_S


def test_a_bucket_lets_its_rate_through() -> None:
    now = [0.0]
    bucket = Bucket(60.0, lambda: now[0])
    waits = [bucket.take(1.0) for _ in range(70)]
    assert waits[:60] == [0.0] * 60
    assert waits[69] == pytest.approx(10.0)
    now[0] = 600.0
    assert bucket.take(1.0) == 0.0
    assert Bucket(0.0).take(1e9) == 0.0


def test_limits_together_halve_once_and_good_answers_give_places_back() -> None:
    now = [0.0]
    pace = Pace(8, now=lambda: now[0])
    for _ in range(5):
        pace.limited(10.0)
    assert pace.places == 4
    now[0] = 20.0
    pace.limited(1.0)
    assert pace.places == 2
    for _ in range(RECOVER_AFTER):
        pace.served()
    assert pace.places == 3


def test_places_are_never_exceeded() -> None:
    pace = Pace(3)
    inside = most = 0

    async def one() -> None:
        nonlocal inside, most
        async with pace.place(10):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    async def live() -> None:
        await asyncio.gather(*(one() for _ in range(20)))

    asyncio.run(live())
    assert most == 3
