"""Checks that provoke a mechanism by name: caches by address or fingerprint, shared buffers, stale weights, modes.

They run after the plain checks, on small shapes where there are any. Each is a question that an honest candidate
answers without noticing. (Referee's facts, D3, D4, D13; CUDA-L1's facts, §2.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench_engine.referee.answers import digest
from workbench_engine.referee.arena import Arena, Slot
from workbench_engine.referee.inputs import TIMED, contents, moved_state
from workbench_engine.referee.reference import Reference
from workbench_engine.referee.tensors import FLOATS, from_float, to_float64
from workbench_engine.referee.tolerance import compare
from workbench_engine.referee.verify import Checker, CheckSet, Contents, Failure, Verified, build, failed
from workbench_engine.tasks.contract import ShapeCase, Task, TensorSpec
from workbench_sessions.events import Check

TOUCHES = (0.0, 0.004, 0.05)
"""Shares of an input that a touched variant changes, in one stretch; 0 is a single element."""


TELLING = 128
"""Input elements that a probe's case has at least."""


class Probes:
    """Question sets made once for a task. `case` is the smallest shape that can tell.

    `base` and its `touched` variants; `reweighted`: the base inputs under other parameters (`state`); `other_mode`:
    the base inputs in training mode, for tasks of mode "both", or in the mode that was *not* declared, to recognise
    who ignores it; `pair`: two sets on the timed shape whose answers must not overwrite one another.
    """

    def __init__(
        self, reference: Reference, arena: Arena, task: Task, timed: list[CheckSet], constructed: dict[str, Contents]
    ) -> None:
        """`constructed`: for each case the parameters as the constructor left them."""
        self.task = task
        self.as_constructed: CheckSet | None = None
        self._constructed = constructed
        self.case = _telling([*task.hidden, timed[0].case])
        self.pair = timed[:2] if len(timed) > 1 else []
        self.base: CheckSet | None = None
        self.touched: list[CheckSet] = []
        self.reweighted: CheckSet | None = None
        self.state: list[NDArray[Any]] = []
        self.reweighted_little: CheckSet | None = None
        self.state_touched: list[NDArray[Any]] = []
        self.other_mode: CheckSet | None = None
        self._reference = reference
        self._arena = arena

    def build(self, rng: np.random.Generator) -> Probes:
        """Ask the reference for the truths. Raises WorkerFailed."""
        reference, arena, case = self._reference, self._arena, self.case
        self.base = build(reference, arena, case, TIMED, rng)
        if self.base is None:
            return self
        for share in TOUCHES:
            variant = build(reference, arena, case, "touched", rng, _touch(self.base.inputs, case, share, rng))
            if variant is not None and _differ(self.base, variant):
                self.touched.append(variant)
        slot = arena.slots_of(case.name)[0]
        if slot.state and self.task.weights == "variable":
            self.as_constructed = self._under(slot, self._constructed.get(case.name, []), rng)
            before_touch = [arena.view(p).copy() for p in slot.state]
            self.state = [moved_state(arena.view(p).copy(), p.spec, rng) for p in slot.state]
            self.reweighted = self._under(slot, self.state, rng)
            self.state_touched = _touched_state(before_touch, slot, rng)
            self.reweighted_little = self._under(slot, self.state_touched, rng)
        if self.task.mode != "eval":
            reference.set_mode(self.task.mode == "both")
            variant = build(reference, arena, case, "other mode", rng, self.base.inputs)
            reference.set_mode(self.task.mode == "train")
            self.other_mode = variant if variant is not None and _differ(self.base, variant) else None
        return self

    def _under(self, slot: Slot, state: Contents, rng: np.random.Generator) -> CheckSet | None:
        """The base inputs under other parameters, where that makes a difference."""
        if self.base is None or len(state) != len(slot.state):
            return None
        before = self._reference.load_state(slot, state)
        variant = build(self._reference, self._arena, self.case, "other weights", rng, self.base.inputs)
        self._reference.load_state(slot, before)
        return variant if variant is not None and _differ(self.base, variant) else None

    def ask(self, checker: Checker) -> Verified:
        """All probes up to the first failure. Raises WorkerFailed."""
        done: list[Check] = []
        for probe in (self._touches, self._two_results, self._weights, self._instances, self._modes):
            failure = probe(checker, done)
            if failure is not None:
                return Verified(done, failure)
        return Verified(done)

    def mistaken_for(self, checker: Checker) -> str:
        """The finding's code when a candidate that failed answers as if in the other mode, or with the parameters
        that the constructor gave it; "" otherwise. Raises WorkerFailed."""
        for other, code in ((self.other_mode, "mode-ignored"), (self.as_constructed, "stale-weights")):
            if other is None or (other is self.other_mode and self.task.mode == "both"):
                continue
            if checker.check(other)[0].ok:
                return code
        return ""

    def _touches(self, checker: Checker, done: list[Check]) -> Failure | None:
        """The same buffers with barely changed contents: a fingerprint of a few elements does not notice."""
        if self.base is None:
            return None
        slot = checker.slot_for(self.base)
        for variant in self.touched:
            for checks in (self.base, variant):
                check, finding = checker.check(checks, slot)
                done.append(check)
                if check.ok:
                    continue
                if checks is variant and finding in ("stale-pointer", "replayed-output"):
                    finding = "stale-fingerprint"
                return failed(checks, check, finding)
        return None

    def _two_results(self, checker: Checker, done: list[Check]) -> Failure | None:
        """Two calls, both answers kept: the second must not overwrite the first."""
        if not self.pair:
            return None
        first, second = self.pair
        candidate = checker.candidate
        ring = candidate.arena.slots_of(first.case.name)
        if len(ring) < 2:
            return None
        one, two = (ring[int(i)] for i in checker.rng.choice(len(ring), size=2, replace=False))
        for slot, checks in ((one, first), (two, second)):
            candidate.write_inputs(slot, checks.inputs)
            candidate.arena.poison(slot)
        candidate.run([one, two], 2 * checker.deadline_s)
        candidate.collect()
        overwritten = all(
            digest(a) == digest(b) for a, b in zip(candidate.outputs(one), candidate.outputs(two), strict=True)
        )
        for slot, checks in ((two, second), (one, first)):
            check, finding = checker.judge_outputs(checks, slot)
            check = Check(f"{checks.name} (two results)", check.ok, check.margin, check.detail, check.worst_index)
            done.append(check)
            if not check.ok:
                return failed(checks, check, "shared-output" if overwritten and slot is one else finding)
        return None

    def _weights(self, checker: Checker, done: list[Check]) -> Failure | None:
        """Other parameters through load_state_dict (for a kernel: at the same address) must change the answer, all of
        them changed or only a few."""
        if self.base is None:
            return None
        candidate = checker.candidate
        slot = checker.slot_for(self.base)
        before = [candidate.arena.view(place).copy() for place in slot.state]
        for variant, state in ((self.reweighted, self.state), (self.reweighted_little, self.state_touched)):
            if variant is None:
                continue
            check, finding = checker.check(self.base, slot)
            done.append(check)
            if not check.ok:
                return failed(self.base, check, finding)
            candidate.write_state(slot, state)
            candidate.load_state()
            check, finding = checker.check(variant, slot, state=state)
            stale = not check.ok and self._answers_as(checker, self.base, slot)
            candidate.write_state(slot, before)
            candidate.load_state()
            done.append(check)
            if not check.ok:
                return failed(variant, check, "stale-weights" if stale else finding)
        check, finding = checker.check(self.base, slot)
        done.append(check)
        return None if check.ok else failed(self.base, check, finding or "stale-weights")

    def _answers_as(self, checker: Checker, old: CheckSet, slot: Slot) -> bool:
        """Whether what lies in the slot answers the question under the old parameters."""
        outputs = checker.candidate.outputs(slot)
        return all(compare(got, expected).ok for got, expected in zip(outputs, old.expected, strict=True))

    def _instances(self, checker: Checker, done: list[Check]) -> Failure | None:
        """A second model beside the first, with other parameters and inputs: neither may show in the other."""
        candidate = checker.candidate
        if self.base is None or not candidate.worker.returns_tensors or not self.touched:
            return None
        slot = checker.slot_for(self.base)
        theirs, state = self.touched[-1], None
        before = [candidate.arena.view(place).copy() for place in slot.state]
        if self.reweighted is not None:
            theirs, state = self.reweighted, self.state
            candidate.write_state(slot, self.state)
        candidate.second_instance(slot)
        for checks, second in ((theirs, True), (self.base, False), (theirs, True)):
            check, finding = checker.check(checks, slot, second, state if state is not None else before)
            done.append(Check(f"{checks.name} (two models)", check.ok, check.margin, check.detail, check.worst_index))
            if not check.ok:
                candidate.write_state(slot, before)
                return failed(checks, check, finding or "shared-state")
        candidate.write_state(slot, before)
        return None

    def _modes(self, checker: Checker, done: list[Check]) -> Failure | None:
        """A task of mode "both": training mode, then evaluation again."""
        candidate = checker.candidate
        if self.task.mode != "both" or self.other_mode is None or self.base is None:
            return None
        if not candidate.worker.returns_tensors:
            return None
        for train, checks in ((True, self.other_mode), (False, self.base)):
            candidate.set_mode(train)
            check, finding = checker.check(checks)
            done.append(check)
            if not check.ok:
                candidate.set_mode(False)
                return failed(checks, check, finding or "mode-ignored")
        return None


def _telling(cases: list[ShapeCase]) -> ShapeCase:
    """The smallest case with outputs enough for a change to show in; the largest when all are tiny."""
    by_size = sorted(cases, key=lambda c: sum(t.nbytes for t in c.tensors))
    large = [c for c in by_size if sum(t.numel for t in c.of("input")) >= TELLING]
    return large[0] if large else by_size[-1]


def _touch(inputs: Contents, case: ShapeCase, share: float, rng: np.random.Generator) -> Contents:
    """Copies of `inputs` with one stretch of one floating input changed, strongly enough to show in any sum."""
    specs = case.of("input")
    changed = [values.copy() for values in inputs]
    able = [i for i, s in enumerate(specs) if s.domain != "fixed" and s.numel > 0]
    if not able:
        return changed
    floating = [i for i in able if specs[i].dtype in FLOATS] or able
    index = floating[int(rng.integers(len(floating)))]
    spec, values = specs[index], changed[index]
    length = max(1, int(share * values.size))
    start = int(rng.integers(values.size - length + 1))
    part = TensorSpec(spec.name, (length,), spec.dtype, spec.role, spec.domain, spec.high)
    fresh = contents(part, "normal", rng)
    if spec.dtype in FLOATS and spec.domain in ("real", "positive"):
        factor = 40.0 if length == 1 else 4.0
        fresh = from_float((np.abs(to_float64(fresh, spec.dtype)) + 1.0).astype(np.float32) * factor, spec.dtype)
    values[start : start + length] = fresh
    return changed


def _touched_state(state: Contents, slot: Slot, rng: np.random.Generator) -> Contents:
    """Copies of the parameters with one short stretch of one floating tensor changed strongly."""
    changed = [values.copy() for values in state]
    able = [i for i, place in enumerate(slot.state) if place.spec.dtype in FLOATS and place.spec.numel > 0]
    if not able:
        return changed
    # The largest tensor is the one worth packing, and so the one worth a fingerprint.
    index = max(able, key=lambda i: slot.state[i].spec.numel)
    values, dtype = changed[index], slot.state[index].spec.dtype
    length = max(1, values.size // 256)
    start = int(rng.integers(values.size - length + 1))
    reals = to_float64(values[start : start + length], dtype)
    values[start : start + length] = from_float((2.0 * reals + 4.0 * (np.std(reals) + 0.25)).astype(np.float32), dtype)
    return changed


def _differ(a: CheckSet, b: CheckSet) -> bool:
    """Whether the right answer to one question would be a wrong one to the other."""
    return not all(compare(x.reference, y).ok for x, y in zip(a.expected, b.expected, strict=True))
