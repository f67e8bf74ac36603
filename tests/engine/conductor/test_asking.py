"""How many groups are asked for at once, from a policy that gives fewer proposals a call than a group has."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.engine.conductor.standin import ScriptedPolicy, Stage

from workbench_engine.conducting.lifecycle import Engine
from workbench_engine.exits import ExitCode
from workbench_engine.policies.contract import Brief, Context, Proposal
from workbench_engine.tasks.design import DesignSpace
from workbench_sessions.events import Budget
from workbench_sessions.log import SessionWriter


class OneAtATime(ScriptedPolicy):
    """Gives one proposal a call, once `enough` calls are open (or no more come)."""

    in_flight = 6
    answers = 1

    def __init__(self, enough: int, last: int) -> None:
        super().__init__(lambda group: None)
        self._enough = asyncio.Event()
        self._wanted = enough
        self._last = last
        self._open = 0
        self._calls = 0
        self.most = 0

    def brief(self, brief: Brief) -> None:
        pass

    async def aclose(self) -> None:
        pass

    async def propose(self, context: Context, n: int) -> list[Proposal]:
        self._calls += 1
        self._open += 1
        self.most = max(self.most, self._open)
        if self._open == self._wanted or self._calls == self._last:
            self._enough.set()
        self._script = lambda group: [f"{context.group} speedup=1.5"]
        await self._enough.wait()
        self._open -= 1
        return await super().propose(context, n)


def run(stage: Stage, policy: OneAtATime) -> ExitCode:
    def make_policy(name: str, space: DesignSpace | None, seed: int) -> OneAtATime:
        return policy

    async def live() -> ExitCode:
        engine = Engine(SessionWriter.open(stage.path), lambda settings, path: stage.executor, make_policy)
        return await asyncio.wait_for(engine.run(), 20.0)

    return asyncio.run(live())


def test_slots_are_filled_from_calls_that_give_one_each(tmp_path: Path) -> None:
    """A group size of 8 must not be taken for 8 candidates under way: 4 slots need 4 calls, not one."""
    stage = Stage(tmp_path, in_flight=4, group_size=8, confirm=False, budget=Budget(evaluations=12))
    policy = OneAtATime(enough=4, last=12)
    assert run(stage, policy) == ExitCode.OK
    assert policy.most >= 4
    assert stage.projection().evaluations == 12


def test_the_last_of_a_budget_are_asked_for_together(tmp_path: Path) -> None:
    """Four evaluations that are left are four calls at once: none of them is counted as a whole group."""
    stage = Stage(tmp_path, in_flight=4, group_size=8, confirm=False, budget=Budget(evaluations=4))
    policy = OneAtATime(enough=4, last=99)
    assert run(stage, policy) == ExitCode.OK
    assert policy.most == 4
    assert stage.projection().evaluations == 4
