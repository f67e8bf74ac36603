"""One answer of one model to one task, what became of it, and what of it is an example to train on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

CORRECT = frozenset(("FASTER", "SAME", "SLOWER", "AMBIGUOUS"))


class Attempt(Struct, frozen=True, kw_only=True):
    """`verdict` "" means that nothing could be judged, `problem` says why. `speedup` is refereed, never claimed."""

    task: str
    model: str
    number: int
    seed: int
    prompt: str
    prompt_sha256: str
    reference: str
    kind: str
    answer: str = ""
    code: str = ""
    problem: str = ""
    verdict: str = ""
    reason: str = ""
    speedup: float | None = None
    lower: float | None = None
    upper: float | None = None
    pairs: int = 0
    reference_s: float | None = None
    candidate_s: float | None = None
    referee_seed: str = ""
    sandbox: str = ""
    findings: list[str] = []
    profile: str = ""
    case: str = ""
    finish: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    endpoint: str = ""


class Goal(Struct, frozen=True):
    """CUDA-L1: at most 20 tries a task and model, until 2 successes."""

    tries: int = 20
    successes: int = 2


def successes(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Executable and correct ones, each code of a task and model once."""
    seen: set[tuple[str, str, str]] = set()
    found = []
    for one in attempts:
        name = (one.task, one.model, one.code.strip())
        if one.verdict in CORRECT and name not in seen:
            seen.add(name)
            found.append(one)
    return found


def wants_more(attempts: Sequence[Attempt], goal: Goal) -> bool:
    """Whether this task and model are asked again; `attempts` are theirs."""
    return len(attempts) < goal.tries and len(successes(attempts)) < goal.successes


def example(one: Attempt, machine: dict[str, str]) -> dict[str, Any]:
    """A row of the data set: the chat, the code, and where it comes from."""
    row: dict[str, Any] = msgspec.to_builtins(one)
    del row["problem"]
    return {**row, **{f"machine_{name}": value for name, value in machine.items()}}
