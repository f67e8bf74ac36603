"""Is it right: check sets made by the reference, and one candidate against them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench_engine.referee.arena import Arena
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.inputs import DISTRIBUTIONS, ON_TIMED_SHAPE, contents
from workbench_engine.referee.reference import Reference
from workbench_engine.referee.tolerance import Expected, compare
from workbench_engine.tasks.contract import ShapeCase, Task
from workbench_sessions.events import Check


class CheckSet:
    """One input set of one case with the truth about it."""

    def __init__(
        self, case: ShapeCase, distribution: str, inputs: list[NDArray[Any]], expected: list[Expected]
    ) -> None:
        self.case = case
        self.distribution = distribution
        self.inputs = inputs
        self.expected = expected

    @property
    def name(self) -> str:
        return f"{self.case.name}/{self.distribution}"


class Failure(Struct, frozen=True):
    """The first check that failed, as feedback, and the finding it means, if any."""

    feedback: str
    finding: str = ""


def check_plan(task: Task, timed: str) -> Iterator[tuple[ShapeCase, str]]:
    """Every distribution on every hidden shape, then the telling ones on the timed shape. Small ones come first, so
    that a wrong candidate costs little."""
    for case in task.hidden:
        for distribution in DISTRIBUTIONS:
            yield case, distribution
    for distribution in ON_TIMED_SHAPE if task.hidden else DISTRIBUTIONS:
        yield task.cases[timed], distribution


def build(
    reference: Reference, arena: Arena, case: ShapeCase, distribution: str, rng: np.random.Generator
) -> CheckSet | None:
    """The truth for one input set; None when the reference itself is not finite on it (then it checks nothing)."""
    slot = arena.slots_of(case.name)[0]
    specs = case.of("input")
    own = reference.own_inputs(slot) if any(s.domain == "fixed" for s in specs) else [None] * len(specs)
    inputs = [
        contents(spec, distribution, rng) if mine is None or spec.domain != "fixed" else mine
        for spec, mine in zip(specs, own, strict=True)
    ]
    for place, values in zip(slot.inputs, inputs, strict=True):
        arena.view(place)[...] = values
    answers = reference.outputs(slot)
    truth = reference.truth(slot)
    for place, values in zip(slot.inputs, inputs, strict=True):
        # A reference that writes to its inputs must not shift the question.
        arena.view(place)[...] = values
    expected = [
        Expected(y, t, spec.dtype, case.accumulate)
        for y, t, spec in zip(answers, truth, case.of("output"), strict=True)
    ]
    if not all(e.usable() for e in expected):
        return None
    return CheckSet(case, distribution, inputs, expected)


def build_all(reference: Reference, arena: Arena, task: Task, timed: str, rng: np.random.Generator) -> list[CheckSet]:
    """All usable check sets of a task, in the order of `check_plan`."""
    sets = (build(reference, arena, case, distribution, rng) for case, distribution in check_plan(task, timed))
    return [s for s in sets if s is not None]


def check_one(
    candidate: Candidate, reference: Reference, checks: CheckSet, rng: np.random.Generator, deadline_s: float
) -> tuple[Check, str]:
    """(check, finding code): outputs poisoned before, inputs and red zones looked at after. Raises WorkerFailed."""
    arena = candidate.arena
    ring = arena.slots_of(checks.case.name)
    slot = ring[int(rng.integers(len(ring)))]
    candidate.write_inputs(slot, checks.inputs)
    arena.poison(slot)
    candidate.run([slot], deadline_s)
    candidate.collect()
    outputs = candidate.outputs(slot)
    worst_margin = 0.0
    for index, (got, expected) in enumerate(zip(outputs, checks.expected, strict=True)):
        result = compare(got, expected)
        worst_margin = max(worst_margin, result.margin)
        if not result.ok:
            name = checks.case.of("output")[index].name
            detail = f"output {name}: {result.detail}" if len(outputs) > 1 else result.detail
            return Check(checks.name, False, result.margin, detail, result.worst), ""
    written = candidate.inputs_intact(slot, checks.inputs)
    if written is not None:
        name = checks.case.of("input")[written].name
        return Check(checks.name, False, None, f"wrote to its input {name}"), "input-mutation"
    if not candidate.state_intact(reference, slot):
        return Check(checks.name, False, None, "wrote to the module's state"), "state-mutation"
    if not arena.red_zones_intact():
        arena.mend_red_zones()
        return Check(checks.name, False, None, "wrote outside its outputs"), "out-of-bounds"
    return Check(checks.name, True, worst_margin, "ok"), ""


def verify(
    candidate: Candidate, reference: Reference, sets: list[CheckSet], rng: np.random.Generator, deadline_s: float
) -> tuple[list[Check], Failure | None]:
    """All checks up to the first failure. Raises WorkerFailed when the candidate dies or overruns."""
    done: list[Check] = []
    for checks in sets:
        check, finding = check_one(candidate, reference, checks, rng, deadline_s)
        done.append(check)
        if not check.ok:
            dims = ", ".join(f"{k}={v}" for k, v in checks.case.dims.items())
            where = f"{checks.distribution} inputs" + (f" at {dims}" if dims else "")
            return done, Failure(f"wrong on {where}: {check.detail}", finding)
    return done, None
