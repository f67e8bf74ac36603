"""One answer of one model to one task, what became of it, and what of it is an example to train on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

CORRECT = frozenset(("FASTER", "SAME", "SLOWER", "AMBIGUOUS"))
MACHINE = ("cpu", "os", "torch", "compiler")
"""What is told of the machine that judged; not its name."""


class Attempt(Struct, frozen=True, kw_only=True):
    """`verdict` "" means that nothing could be judged, `problem` says why. `speedup` is refereed, never claimed.

    `seed` is the request's, `referee_seed` the one its inputs were drawn with. `machine` judged it. `repeats` names the
    earlier attempt ("MODEL/NUMBER") that gave the same code: that one was judged, this one has its verdict. `cost` is
    None for a model without a price.
    """

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
    machine: dict[str, str] = {}
    repeats: str = ""


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


def data_set(attempts: Iterable[Attempt]) -> list[Attempt]:
    """What is trained on, in an order that does not depend on which model answered first."""
    return successes(sorted(attempts, key=lambda one: (one.task, one.model, one.number)))


def same_code(attempts: Iterable[Attempt], task: str, code: str) -> Attempt | None:
    """The attempt whose verdict already says what the referee thinks of this code."""
    found = (a for a in attempts if a.task == task and a.verdict and not a.repeats and a.code.strip() == code.strip())
    return next(found, None)


def example(one: Attempt) -> dict[str, Any]:
    """A row of the data set: the prompt, the answer, the code, and where it comes from."""
    row: dict[str, Any] = msgspec.to_builtins(one)
    del row["problem"], row["machine"]
    return {**row, **{f"machine_{name}": one.machine.get(name, "") for name in MACHINE}}
