"""A candidate's earlier answers, and what a wrong one gives away: old, unwritten, late, rounded, constant, partial."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench_engine.referee.arena import Slot
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.precision import explains, relative_error
from workbench_engine.referee.tensors import is_poison, to_float64
from workbench_engine.referee.tolerance import Expected

NEAR = 0.05
"""Relative error over the whole output up to which a wrong answer is an approximation, not another function."""

LATE_S = 0.03
"""How long a suspected late output is given to change."""


def digest(output: NDArray[Any]) -> int:
    """32-bit digest of an output's bytes."""
    return zlib.crc32(output.tobytes())


class Answers:
    """Digests of right answers given so far: where, and to which question."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], tuple[int, str]] = {}

    def remember(self, slot: Slot, question: str, outputs: Sequence[NDArray[Any]]) -> None:
        for index, output in enumerate(outputs):
            self._seen[(index, digest(output))] = (slot.index, question)

    def right_on(self, case: str) -> int:
        """How many questions on a case were answered rightly so far."""
        return len({question for _, question in self._seen.values() if question.startswith(f"{case}/")})

    def earlier(self, index: int, output: NDArray[Any]) -> tuple[int, str] | None:
        """(slot, question) to which output `index` was given before, bit for bit."""
        return self._seen.get((index, digest(output)))


def name_failure(
    candidate: Candidate,
    slot: Slot,
    index: int,
    expected: Expected,
    answers: Answers,
    accumulate: int,
    deadline_s: float,
) -> str:
    """The finding's code for a wrong output. Raises WorkerFailed."""
    place = slot.outputs[index]
    output = candidate.arena.view(place)
    earlier = answers.earlier(index, output)
    if earlier is not None:
        return "stale-pointer" if earlier[0] == slot.index else "replayed-output"
    got = output.copy()
    unwritten = bool(is_poison(output, place.spec.dtype).any())
    if unwritten or candidate.worker.returns_tensors:
        time.sleep(LATE_S)
        candidate.collect()
        if output.tobytes() != got.tobytes():
            return "late-output"
    if unwritten:
        return "unwritten-output"
    if explains(got, expected, accumulate):
        return "lower-precision"
    candidate.run([slot], deadline_s)
    candidate.collect()
    return shape_of_error(got, output.copy(), expected) or _where(slot, answers) or "another-function"


def _where(slot: Slot, answers: Answers) -> str:
    """What the questions answered rightly before say of one answered wrongly."""
    if answers.right_on(slot.case.name):
        return "narrow-inputs"
    return "timed-shape" if answers.right_on("hidden-0") else ""


def shape_of_error(got: NDArray[Any], again: NDArray[Any], expected: Expected) -> str:
    """What a wrong answer (flat, storage dtype) and the answer to the same question again look like. Pure."""
    if got.size > 1 and bool((got == got[0]).all()):
        return "constant-output"
    if expected.exact:
        wrong = got != expected.reference
    else:
        error = np.abs(to_float64(got, expected.dtype) - expected.truth)
        # Not "error > allowed": NaN is wrong too.
        wrong = ~(error <= expected.allowed)
        other = to_float64(again, expected.dtype)
        moved = np.abs(other - to_float64(got, expected.dtype))
        if not bool((moved <= expected.allowed + 1e-3 * np.abs(expected.truth)).all()):
            return "undefined-output"
    share = float(np.mean(wrong)) if wrong.size else 0.0
    if 0.0 < share <= 0.75:
        return "partly-wrong"
    return "inexact" if not expected.exact and relative_error(got, expected.truth, expected.dtype) < NEAR else ""
