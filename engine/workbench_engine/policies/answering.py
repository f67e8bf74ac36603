"""The policies that ask a model for what the settings say: code, or a point of the task's design space."""

from __future__ import annotations

from pathlib import Path

from workbench_engine.llm.making import ClosingModel
from workbench_engine.llm.meter import Meter
from workbench_engine.llm.vllm_server import ServerState, VllmModel, VllmServer
from workbench_engine.policies.contract import Brief, Context, Outcome, Proposal, Update
from workbench_engine.policies.llm.policy import LlmPolicy, ModelMaker
from workbench_engine.policies.llm_points import PointsPolicy
from workbench_engine.tasks.design import DesignSpace
from workbench_sessions.events import ServerReported


class AnsweringPolicy:
    """`llm` and `vllm`: which of the two policies behind them it is, is known when the run is told about."""

    def __init__(self, name: str, space: DesignSpace | None, make: ModelMaker) -> None:
        self.name = name
        self._space = space
        self._make = make
        self._inner = LlmPolicy(name, make)

    @property
    def in_flight(self) -> int:
        """See `Briefed`."""
        return self._inner.in_flight

    @property
    def answers(self) -> int:
        """See `Briefed`."""
        return self._inner.answers

    def brief(self, brief: Brief) -> None:
        """See `Briefed`. Raises ValueError also when points are asked for and the task has no design space."""
        if brief.llm.answers == "points":
            if self._space is None:
                raise ValueError(f"task {brief.task.name} has no design space; leave out --answers points")
            self._inner = PointsPolicy(self._space, self.name, self._make)
        self._inner.brief(brief)

    async def propose(self, context: Context, n: int) -> list[Proposal]:
        return await self._inner.propose(context, n)

    async def learn(self, context: Context, outcomes: list[Outcome]) -> Update | None:
        return await self._inner.learn(context, outcomes)

    def state(self) -> bytes:
        return self._inner.state()

    def restore(self, state: bytes) -> None:
        self._inner.restore(state)

    async def aclose(self) -> None:
        await self._inner.aclose()


def served(brief: Brief, meter: Meter) -> ClosingModel:
    """The model of a vLLM server that is started at the first prompt and ended with the run (or attached to)."""

    def tell(state: ServerState) -> None:
        brief.say(ServerReported("vllm", state.state, state.text, round(state.seconds, 1)), {})

    return VllmModel(VllmServer(brief.vllm, brief.llm, server_log(brief.folder), tell), meter)


def server_log(prompts: Path) -> Path:
    """Where the server of a session writes, beside the session and its folder of prompts."""
    return prompts.with_name(prompts.name.removesuffix("-prompts") + "-vllm.log")
