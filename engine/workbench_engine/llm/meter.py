"""Hard caps on money, tokens, requests and time, shared by everything that asks in one run.

What is in flight counts at its worst case, so a cap is never passed: a request that does not fit waits for others to
end (they mostly cost less than reserved), is then cut to what is left, and is refused when that is nothing.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from workbench_engine.llm.cost import cost_of
from workbench_engine.llm.errors import CapReached
from workbench_engine.llm.settings import Price

LEAST_ANSWER = 256
"""Tokens below which an answer is not worth asking for."""


class Caps(Struct, frozen=True):
    """None = no cap. `seconds` since the meter was made."""

    money: float | None = None
    tokens: int | None = None
    requests: int | None = None
    seconds: float | None = None


class Spent(Struct, frozen=True):
    """Paid so far. `unpriced` requests were of models without a price: their money is not known."""

    money: float = 0.0
    tokens: int = 0
    requests: int = 0
    unpriced: int = 0


class Hold(Struct, frozen=True):
    """A reservation: at most `answer_tokens` may come back in all."""

    tokens: int
    money: float
    answer_tokens: int
    price: Price | None


class Meter:
    """Not shared between event loops. `caps` may be replaced at any time."""

    def __init__(self, caps: Caps = Caps(), spent: Spent = Spent(), now: Callable[[], float] = time.monotonic) -> None:
        self.caps = caps
        self.spent = spent
        self._now = now
        self._start_s = now()
        self._held_tokens = 0
        self._held_money = 0.0
        self._in_flight = 0
        self._released = asyncio.Event()

    async def reserve(self, tokens_in: int, answer_tokens: int, price: Price | None = None) -> Hold:
        """Waits until a request of this size fits. Raises CapReached when it never will."""
        while True:
            self._refuse_if_over()
            fits = self._fitting(tokens_in, answer_tokens, price)
            if fits >= answer_tokens or (self._in_flight == 0 and fits >= LEAST_ANSWER):
                return self._hold(tokens_in, min(fits, answer_tokens), price)
            if self._in_flight == 0:
                raise self._too_small()
            await self._released.wait()

    def settle(self, hold: Hold, tokens_in: int, tokens_out: int, cached_tokens: int = 0) -> float | None:
        """Ends a reservation with what was really used; returns its cost, None without a price."""
        cost = cost_of(hold.price, tokens_in, tokens_out, cached_tokens)
        self.spent = replace(
            self.spent,
            money=self.spent.money + (cost or 0.0),
            tokens=self.spent.tokens + tokens_in + tokens_out,
            unpriced=self.spent.unpriced + (cost is None),
        )
        self._in_flight -= 1
        self._held_tokens -= hold.tokens
        self._held_money -= hold.money
        released, self._released = self._released, asyncio.Event()
        released.set()
        return cost

    def _hold(self, tokens_in: int, answer_tokens: int, price: Price | None) -> Hold:
        hold = Hold(tokens_in + answer_tokens, cost_of(price, tokens_in, answer_tokens) or 0.0, answer_tokens, price)
        self.spent = replace(self.spent, requests=self.spent.requests + 1)
        self._in_flight += 1
        self._held_tokens += hold.tokens
        self._held_money += hold.money
        return hold

    def _fitting(self, tokens_in: int, answer_tokens: int, price: Price | None) -> int:
        """Answer tokens that are left beside what is spent and held; may be negative."""
        fits: float = answer_tokens
        if self.caps.tokens is not None:
            fits = min(fits, self.caps.tokens - self.spent.tokens - self._held_tokens - tokens_in)
        if self.caps.money is not None and price is not None:
            left = self.caps.money - self.spent.money - self._held_money - (cost_of(price, tokens_in, 0) or 0.0)
            if price.output > 0.0:
                fits = min(fits, left / price.output * 1e6)
            elif left < 0.0:
                fits = -1
        return math.floor(fits)

    def _refuse_if_over(self) -> None:
        caps, spent = self.caps, self.spent
        if caps.requests is not None and spent.requests >= caps.requests:
            raise CapReached("requests", f"{spent.requests} requests are spent")
        if caps.tokens is not None and spent.tokens >= caps.tokens:
            raise CapReached("tokens", f"{spent.tokens} of {caps.tokens} tokens are spent")
        if caps.money is not None and spent.money >= caps.money:
            raise CapReached("money", f"{spent.money:.2f} of {caps.money:.2f} is spent")
        elapsed_s = self._now() - self._start_s
        if caps.seconds is not None and elapsed_s >= caps.seconds:
            raise CapReached("time", f"{elapsed_s:.0f} s are spent")

    def _too_small(self) -> CapReached:
        caps, spent = self.caps, self.spent
        left = []
        if caps.tokens is not None:
            left.append(f"{max(0, caps.tokens - spent.tokens)} tokens")
        if caps.money is not None:
            left.append(f"{max(0.0, caps.money - spent.money):.4f} money")
        cap = "tokens" if caps.tokens is not None else "money"
        return CapReached(cap, f"the {' and '.join(left)} left of the budget do not pay for another request")
