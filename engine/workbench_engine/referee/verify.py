"""Is it right: check sets made by the reference, and one candidate against them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from workbench_engine.referee.answers import Answers, name_failure
from workbench_engine.referee.arena import Arena, Slot
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.inputs import DISTRIBUTIONS, FEW_VALUES, ON_TIMED_SHAPE, TIMED, contents, nudged
from workbench_engine.referee.precision import Precision, class_of, explains, relative_error
from workbench_engine.referee.reference import Reference
from workbench_engine.referee.tolerance import Comparison, Expected, compare
from workbench_engine.tasks.contract import ShapeCase, Task
from workbench_sessions.events import Check

Contents = list[NDArray[Any]]
FEW = 65_536
"""Outputs up to which the conditioning of a question is measured."""


class CheckSet:
    """One input set of one case with the truth about it. `precision`: what the task declares."""

    def __init__(
        self, case: ShapeCase, distribution: str, inputs: Contents, expected: list[Expected], precision: str = ""
    ) -> None:
        self.case = case
        self.distribution = distribution
        self.inputs = inputs
        self.expected = expected
        self.precision = precision

    @property
    def name(self) -> str:
        return f"{self.case.name}/{self.distribution}"


class Failure(Struct, frozen=True):
    """The first check that failed, as feedback, and the finding it means, if any."""

    feedback: str
    finding: str = ""


class Verified(Struct, frozen=True):
    """What the checks said: all done, the first failure if any, and the precision class of the timed shape's answer.

    `lowered` names a lower class that the task's policy lets pass with a label.
    """

    checks: list[Check]
    failure: Failure | None = None
    precision: Precision | None = None
    lowered: str = ""


def check_plan(task: Task, timed: str) -> Iterator[tuple[ShapeCase, str]]:
    """Every distribution on every hidden shape, then the telling ones on the timed shape. Small ones come first, so
    that a wrong candidate costs little."""
    for case in task.hidden:
        for distribution in DISTRIBUTIONS:
            # A single small number drowns in whatever constant the arithmetic passes through.
            if distribution != "small" or sum(t.numel for t in case.of("input")) > 1:
                yield case, distribution
    for distribution in ON_TIMED_SHAPE if task.hidden else DISTRIBUTIONS:
        yield task.cases[timed], distribution


def build(
    reference: Reference,
    arena: Arena,
    case: ShapeCase,
    distribution: str,
    rng: np.random.Generator,
    inputs: Contents | None = None,
) -> CheckSet | None:
    """The truth for one input set (`inputs`, or drawn from `distribution`); None when the reference itself is not
    finite on it (then it checks nothing)."""
    slot = arena.slots_of(case.name)[0]
    specs = case.of("input")
    if inputs is None:
        own = reference.own_inputs(slot) if any(s.domain == "fixed" for s in specs) else [None] * len(specs)
        inputs = [
            contents(spec, distribution, rng) if spec.domain != "fixed" or kept is None else kept
            for spec, kept in zip(specs, own, strict=True)
        ]
    for place, values in zip(slot.inputs, inputs, strict=True):
        arena.view(place)[...] = values
    answers = reference.outputs(slot)
    for place, values in zip(slot.inputs, inputs, strict=True):
        # A reference that writes to its inputs must not shift the question.
        arena.view(place)[...] = values
    truth = reference.truth(slot)
    precision = reference.task.declared_precision
    # Equal terms round the same way each time: their error grows like K, not like √K.
    terms = case.accumulate**2 if distribution in FEW_VALUES else case.accumulate
    expected = [
        Expected(y, t, spec.dtype, terms, precision)
        for y, t, spec in zip(answers, truth, case.of("output"), strict=True)
    ]
    if not all(e.usable() for e in expected):
        return None
    if sum(e.truth.size for e in expected) <= FEW:
        # How well the question is conditioned decides what is wrong, above all where few outputs average nothing out.
        for place, values, spec in zip(slot.inputs, inputs, specs, strict=True):
            arena.view(place)[...] = nudged(values, spec, max(1.0, 0.25 * terms**0.5), rng)
        for e, moved in zip(expected, reference.truth(slot), strict=True):
            e.conditioned(moved - e.truth)
    return CheckSet(case, distribution, inputs, expected, precision)


def build_all(reference: Reference, arena: Arena, task: Task, timed: str, rng: np.random.Generator) -> list[CheckSet]:
    """All usable check sets of a task, in the order of `check_plan`."""
    sets = (build(reference, arena, case, distribution, rng) for case, distribution in check_plan(task, timed))
    return [s for s in sets if s is not None]


class Checker:
    """One candidate being checked: remembers its answers, so that a wrong one can be recognised as an old one."""

    def __init__(
        self, candidate: Candidate, reference: Reference, rng: np.random.Generator, deadline_s: float, timed: str = ""
    ) -> None:
        self.candidate = candidate
        self.rng = rng
        self.deadline_s = deadline_s
        self.answers = Answers()
        self.precision: Precision | None = None
        self.lowered = ""
        self._reference = reference
        self._timed = timed
        self._lenient = reference.task.lower_precision == "label"

    def slot_for(self, checks: CheckSet) -> Slot:
        ring = self.candidate.arena.slots_of(checks.case.name)
        return ring[int(self.rng.integers(len(ring)))]

    def check(
        self,
        checks: CheckSet,
        slot: Slot | None = None,
        second: bool = False,
        state: Sequence[NDArray[Any]] | None = None,
    ) -> tuple[Check, str]:
        """(check, finding code): outputs poisoned before, inputs and red zones looked at after. Raises WorkerFailed.

        `second`: on the second instance. `state`: what the arena's state must still hold (default: the reference's).
        """
        candidate = self.candidate
        slot = slot or self.slot_for(checks)
        candidate.write_inputs(slot, checks.inputs)
        candidate.arena.poison(slot)
        candidate.run([slot], self.deadline_s, second)
        candidate.collect()
        return self.judge_outputs(checks, slot, state)

    def judge_outputs(
        self, checks: CheckSet, slot: Slot, state: Sequence[NDArray[Any]] | None = None
    ) -> tuple[Check, str]:
        """Compare what lies in `slot` now with the truth, and look at what else the call touched."""
        candidate = self.candidate
        arena = candidate.arena
        outputs = candidate.outputs(slot)
        worst_margin = 0.0
        for index, (got, expected) in enumerate(zip(outputs, checks.expected, strict=True)):
            result = self._compare(got, expected, checks.case.accumulate)
            worst_margin = max(worst_margin, result.margin)
            if not result.ok:
                finding = name_failure(
                    candidate, slot, index, expected, self.answers, checks.case.accumulate, self.deadline_s
                )
                name = checks.case.of("output")[index].name
                detail = f"output {name}: {result.detail}" if len(outputs) > 1 else result.detail
                return Check(checks.name, False, result.margin, detail, result.worst), finding
        self.answers.remember(slot, checks.name, outputs)
        if checks.distribution == TIMED and checks.case.name == self._timed and not checks.expected[0].exact:
            self._classify(outputs[0], checks)
        written = candidate.inputs_intact(slot, checks.inputs)
        if written is not None:
            name = checks.case.of("input")[written].name
            return Check(checks.name, False, None, f"wrote to its input {name}"), "input-mutation"
        if not candidate.state_intact(self._reference, slot, state):
            return Check(checks.name, False, None, "wrote to the module's state"), "state-mutation"
        if not arena.red_zones_intact():
            arena.mend_red_zones()
            return Check(checks.name, False, None, "wrote outside its outputs"), "out-of-bounds"
        return Check(checks.name, True, worst_margin, "ok"), ""

    def _compare(self, got: NDArray[Any], expected: Expected, accumulate: int) -> Comparison:
        result = compare(got, expected)
        if result.ok or not self._lenient:
            return result
        lower = explains(got, expected, accumulate)
        if not lower:
            return result
        self.lowered = lower
        return Comparison(True, 1.0, None, f"ok in {lower}")

    def _classify(self, got: NDArray[Any], checks: CheckSet) -> None:
        expected = checks.expected[0]
        error = relative_error(got, expected.truth, expected.dtype)
        own = relative_error(expected.reference, expected.truth, expected.dtype)
        self.precision = class_of(error, own, checks.case.accumulate, expected.dtype)


def failed(checks: CheckSet, check: Check, finding: str) -> Failure:
    """A failed check as feedback for a person or a prompt."""
    dims = ", ".join(f"{k}={v}" for k, v in checks.case.dims.items())
    where = f"{checks.distribution} inputs" + (f" at {dims}" if dims else "")
    return Failure(f"wrong on {where}: {check.detail}", finding)


def verify(checker: Checker, sets: list[CheckSet]) -> Verified:
    """All checks up to the first failure. Raises WorkerFailed when the candidate dies or overruns."""
    done: list[Check] = []
    for checks in sets:
        check, finding = checker.check(checks)
        done.append(check)
        if not check.ok:
            return Verified(done, failed(checks, check, finding))
    return Verified(done, None, checker.precision, checker.lowered)
