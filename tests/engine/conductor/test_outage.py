from __future__ import annotations

import asyncio

import pytest

from workbench_engine.conducting.outage import Outage
from workbench_engine.llm.backoff import Backoff
from workbench_engine.policies.contract import PolicyUnavailable

SOON = Backoff(first_s=0.001, longest_s=0.001, least_s=0.0)
GONE = PolicyUnavailable("the server is gone")


class Caller:
    """Calls something that is away until `back` is set; keeps the rules of `Outage`."""

    def __init__(self, outage: Outage, back: asyncio.Event, calls: list[str], name: str) -> None:
        self._outage, self._back, self._calls, self._name = outage, back, calls, name

    async def call(self) -> None:
        probing = False
        while True:
            self._calls.append(self._name)
            await asyncio.sleep(0)
            if self._back.is_set():
                self._outage.over()
                return
            probing = await self._outage.wait(GONE, probing)


def test_one_tries_again_and_all_go_on() -> None:
    said: list[str] = []
    calls: list[str] = []

    async def live() -> None:
        outage, back = Outage(said.append, backoff=SOON), asyncio.Event()
        callers = [asyncio.create_task(Caller(outage, back, calls, str(i)).call()) for i in range(5)]
        while len(calls) < 12:
            await asyncio.sleep(0.001)
        assert outage.on
        back.set()
        await asyncio.wait_for(asyncio.gather(*callers), 5.0)
        assert not outage.on

    asyncio.run(live())
    assert said == ["the server is gone", ""]
    # After each failed once, a single one did the trying.
    assert len(set(calls[5:12])) == 1
    assert sorted(set(calls[-5:])) == ["0", "1", "2", "3", "4"]


def test_when_the_one_that_tries_is_cancelled_another_does() -> None:
    calls: list[str] = []

    async def live() -> None:
        outage, back = Outage(lambda reason: None, backoff=SOON), asyncio.Event()
        callers = [asyncio.create_task(Caller(outage, back, calls, str(i)).call()) for i in range(2)]
        while len(calls) < 6:
            await asyncio.sleep(0.001)
        callers[int(calls[-1])].cancel()
        outage.given_up()
        count = len(calls)
        while len(calls) < count + 3:
            await asyncio.sleep(0.001)
        back.set()
        await asyncio.wait_for(asyncio.gather(*callers, return_exceptions=True), 5.0)

    asyncio.run(asyncio.wait_for(live(), 10.0))


def test_patience_ends_with_the_reason() -> None:
    now = [0.0]

    async def live() -> None:
        outage = Outage(lambda reason: None, patience_s=60.0, backoff=SOON, now=lambda: now[0])
        assert await outage.wait(GONE, False)
        now[0] = 61.0
        await outage.wait(GONE, True)

    with pytest.raises(PolicyUnavailable, match="the server is gone"):
        asyncio.run(live())


def test_a_person_can_have_it_tried_at_once() -> None:
    async def live() -> bool:
        outage = Outage(lambda reason: None, backoff=Backoff(first_s=1e3, longest_s=1e3, least_s=1e3))
        waiting = asyncio.create_task(outage.wait(GONE, False))
        await asyncio.sleep(0)
        outage.try_now()
        return await asyncio.wait_for(waiting, 5.0)

    assert asyncio.run(live())
