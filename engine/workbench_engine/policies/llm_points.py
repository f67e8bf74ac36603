"""A model that chooses design points instead of writing code: a prompt, structured JSON back, rendered to C++.

The server enforces the form of the answer, so that every answer is a point of the space, of small models too. Exemplars
are shown as points with their scores, contrastive as those of `llm`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from workbench_engine.llm.contract import Choice, Completion, Message, Request, Structured
from workbench_engine.policies.contract import Brief, Context, Outcome, Proposal, Scored, Update
from workbench_engine.policies.llm.answers import Answer
from workbench_engine.policies.llm.extract import Sections
from workbench_engine.policies.llm.planning import Plan
from workbench_engine.policies.llm.policy import LlmPolicy, ModelMaker, Run, configured
from workbench_engine.policies.proposing import usable
from workbench_engine.rl.contrastive import score_of
from workbench_engine.tasks.design import DesignPoint, DesignSpace, Dimension, Value

_TYPES: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def schema_of(space: DesignSpace) -> dict[str, Any]:
    """JSON schema whose valid instances are exactly the points of the space, keys in declared order."""
    return {
        "type": "object",
        "properties": {d.name: _enum(d) for d in space.dimensions},
        "required": [d.name for d in space.dimensions],
        "additionalProperties": False,
    }


def _enum(dimension: Dimension) -> dict[str, Any]:
    kinds = {_TYPES[type(v)] for v in dimension.values}
    # Of mixed values no single type can be told; the enumeration alone is as strict.
    typed = {"type": kinds.pop()} if len(kinds) == 1 else {}
    return {**typed, "enum": list(dimension.values)}


def point_of(space: DesignSpace, text: str) -> DesignPoint:
    """The point that an answer describes. Raises ValueError with what is wrong, in one line."""
    try:
        values = msgspec.json.decode(text.strip())
    except msgspec.DecodeError as error:
        raise ValueError(f"the answer is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise ValueError("the answer is no JSON object")
    exact: dict[str, Value] = {}
    by_name = {d.name: d for d in space.dimensions}
    for name, value in values.items():
        dimension = by_name.get(name)
        # 1 == True and 2 == 2.0 in Python; what counts is the value of the space.
        same = (
            [v for v in dimension.values if v == value and isinstance(v, bool) == isinstance(value, bool)]
            if dimension
            else []
        )
        if dimension is not None and not same:
            options = ", ".join(map(repr, dimension.values))
            raise ValueError(f"{name} = {value!r:.80} is not one of {options}")
        exact[name] = same[0] if same else value
    return space.point(exact)


class PointsPolicy(LlmPolicy):
    """See the module. One prompt gives up to `llm.n` points; nothing is repaired."""

    def __init__(self, space: DesignSpace, name: str = "llm-points", make: ModelMaker = configured) -> None:
        super().__init__(name, make)
        self._space = space
        self._structured = Structured(schema=schema_of(space), name="design_point")

    def brief(self, brief: Brief) -> None:
        """See `Briefed`."""
        super().brief(brief)
        self._shown = dimensions_of(self._space)

    async def propose(self, context: Context, n: int) -> list[Proposal]:
        """Points of one prompt."""
        run = self._briefed()
        if n < 1:
            return []
        self._caps(run, context)
        await self._prepared(run)
        exemplars = tuple(s for s in context.exemplars or context.parents if self._showable(s))
        planned = Plan("full", exemplars)
        # The order in which a small model sees the choices sways it: vary it from prompt to prompt.
        order = random.Random(f"{run.brief.seed}:{context.group}:order")
        values = {
            "dimensions": order.sample(self._shown, len(self._shown)),
            "exemplars": [{"json": _json(s.point), "speedup": s.speedup} for s in planned.shown],
            "failures": [f.feedback for f in context.failures[: run.brief.llm.failures] if f.feedback],
            "steering": context.steering,
        }
        messages = self._rendered(lambda: run.prompts.points(values))
        return await self._ask(run, context, planned, messages, min(n, run.brief.llm.n))

    async def learn(self, context: Context, outcomes: list[Outcome]) -> Update | None:
        """Nothing is learned, and a point that does not build is left alone."""
        await super().learn(context, outcomes)
        self._repairs.clear()
        return None

    def _showable(self, scored: Scored) -> bool:
        return score_of(scored) is not None and usable(scored.point, self._space) is not None

    def _request(self, run: Run, messages: tuple[Message, ...], n: int, seed: int) -> Request:
        return Request(messages, n=n, seed=seed, structured=self._structured, logprobs=run.brief.llm.logprobs)

    def _answer(self, run: Run, planned: Plan, choice: Choice) -> Answer:
        nothing = Sections("", "")
        if choice.finish == "length":
            problem = "the answer ended before the point was complete; raise llm.max_tokens"
            return Answer(nothing, problem=problem, mendable=False)
        try:
            point = point_of(self._space, choice.text)
        except ValueError as error:
            return Answer(nothing, problem=str(error), mendable=False)
        return Answer(nothing, code=self._space.render(point).text(), mendable=False)

    def _proposal(self, planned: Plan, answer: Answer, done: Completion, prompt: str, number: int) -> Proposal:
        made = super()._proposal(planned, answer, done, prompt, number)
        point = point_of(self._space, done.choices[number].text)
        return msgspec.structs.replace(
            made, kind="kernel", point=point, origin=msgspec.structs.replace(made.origin, patch="point")
        )


def dimensions_of(space: DesignSpace) -> list[Mapping[str, Any]]:
    """The choices as the template shows them."""
    return [
        {"name": d.name, "doc": d.doc, "values": ", ".join(msgspec.json.encode(v).decode() for v in d.values)}
        for d in space.dimensions
    ]


def _json(point: DesignPoint | None) -> str:
    return msgspec.json.encode(point.values).decode() if point is not None else ""


__all__: Sequence[str] = ("PointsPolicy", "point_of", "schema_of")
