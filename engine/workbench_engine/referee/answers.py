"""A candidate's earlier answers, and what a wrong one gives away: old, unwritten, late, or rounded."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from workbench_engine.referee.arena import Slot
from workbench_engine.referee.candidate import Candidate
from workbench_engine.referee.precision import explains
from workbench_engine.referee.tensors import is_poison
from workbench_engine.referee.tolerance import Expected

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

    def earlier(self, index: int, output: NDArray[Any]) -> tuple[int, str] | None:
        """(slot, question) to which output `index` was given before, bit for bit."""
        return self._seen.get((index, digest(output)))


def name_failure(
    candidate: Candidate, slot: Slot, index: int, expected: Expected, answers: Answers, accumulate: int
) -> str:
    """The finding's code for a wrong output, "" when it is merely wrong. Raises WorkerFailed."""
    place = slot.outputs[index]
    output = candidate.arena.view(place)
    earlier = answers.earlier(index, output)
    if earlier is not None:
        return "stale-pointer" if earlier[0] == slot.index else "replayed-output"
    unwritten = bool(is_poison(output, place.spec.dtype).any())
    if unwritten or candidate.worker.returns_tensors:
        before = output.tobytes()
        time.sleep(LATE_S)
        candidate.collect()
        if candidate.arena.view(place).tobytes() != before:
            return "late-output"
    if unwritten:
        return "unwritten-output"
    if explains(output, expected, accumulate):
        return "lower-precision"
    return ""
