"""A policy on a thread and event loop of its own: its arithmetic must not delay the engine's loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from workbench_engine.policies.contract import Brief, Briefed, Context, Outcome, Policy, Proposal, Update

CLOSE_S = 2.0

T = TypeVar("T")


class PolicyThread:
    """Calls of one policy: one at a time, or as many as it says (`Briefed.in_flight`)."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.name = policy.name
        self.in_flight = 1
        self._answers: int | None = None
        self._turn = asyncio.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="policy", daemon=True)
        self._thread.start()

    async def brief(self, brief: Brief) -> None:
        """Tells a policy about the run, if it wants to know. Raises ValueError when the settings cannot be used."""
        policy = self._policy
        if not isinstance(policy, Briefed):
            return

        async def call() -> None:
            policy.brief(brief)

        await self._call(call)
        self.in_flight = max(1, policy.in_flight)
        self._answers = max(1, policy.answers)

    def group(self, size: int) -> int:
        """How many proposals a call for `size` of them can give."""
        return size if self._answers is None else min(size, self._answers)

    async def propose(self, context: Context, n: int) -> tuple[list[Proposal], bytes]:
        """The proposals and the policy's state after them."""

        async def call() -> tuple[list[Proposal], bytes]:
            proposals = await self._policy.propose(context, n)
            return proposals, self._policy.state()

        return await self._call(call)

    async def learn(self, context: Context, outcomes: list[Outcome]) -> tuple[Update | None, bytes]:
        """The update and the policy's state after it."""

        async def call() -> tuple[Update | None, bytes]:
            update = await self._policy.learn(context, outcomes)
            return update, self._policy.state()

        return await self._call(call)

    async def restore(self, state: bytes) -> None:
        """Raises ValueError when the bytes are not of this policy."""

        async def call() -> None:
            self._policy.restore(state)

        await self._call(call)

    async def aclose(self) -> None:
        policy = self._policy
        if isinstance(policy, Briefed):
            with suppress(Exception):
                closing = asyncio.run_coroutine_threadsafe(policy.aclose(), self._loop)
                await asyncio.wait_for(asyncio.wrap_future(closing), CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, 5.0)

    async def _call(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self.in_flight > 1:
            # It waits most of the time, and its calls take turns on its own loop.
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))
        async with self._turn:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))

    def _serve(self) -> None:
        # More threads would take cores away from the candidates being timed.
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(1)
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left))
        self._loop.close()
