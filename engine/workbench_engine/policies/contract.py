"""What a policy is: given what is known, propose candidates; given their rewards, learn.

The conductor draws parents and exemplars (`search`, `rl`), asks for one group, runs the cascade on every proposal and
gives the rewards back. A policy never sees the reference, a tolerance or a verdict's inner workings.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from workbench_engine.tasks.design import DesignPoint, DesignSpace
from workbench_sessions.events import Origin


class Scored(Struct, frozen=True):
    """A judged candidate as a policy may know it: `speedup` is a ratio, None when it is not correct."""

    candidate: str
    text: str
    point: DesignPoint | None
    speedup: float | None
    verdict: str
    island: int
    generation: int
    feedback: str = ""


class Context(Struct, frozen=True):
    """What one group of proposals is conditioned on. `exemplars` are slow to fast (CUDA-L1 stage 3: N = 2)."""

    task: str
    group: int
    island: int
    parents: tuple[Scored, ...] = ()
    exemplars: tuple[Scored, ...] = ()
    steering: str = ""


class Proposal(Struct, frozen=True):
    """One candidate to try. `text` is the file (`.cpp` or `.py`); `sample` lets the policy learn from it."""

    kind: str
    text: str
    origin: Origin
    point: DesignPoint | None = None
    sample: int | None = None
    note: str = ""


class Outcome(Struct, frozen=True):
    """What became of a proposal. `reward` is ln speedup, clipped, with fixed penalties for not built or wrong."""

    sample: int | None
    reward: float
    correct: bool
    speedup: float | None


class Update(Struct, frozen=True):
    """What one learning step did; the fields of `PolicyUpdated`."""

    step: int
    advantages: tuple[float, ...]
    loss: float | None = None
    entropy: float | None = None
    kl: float | None = None
    grad_norm: float | None = None
    version: int = 0
    skipped: str = ""


class Policy(Protocol):
    """Implementations: `random`, `best-of-n`, `design-space` (trained on the spot), later `llm`, `manual`."""

    name: str

    async def propose(self, context: Context, n: int) -> list[Proposal]:
        """Up to `n` proposals for one group; an empty list means that the policy has nothing more to offer."""
        ...

    async def learn(self, context: Context, outcomes: list[Outcome]) -> Update | None:
        """Learn from one finished group; None when this policy does not learn."""
        ...

    def state(self) -> bytes:
        """Everything needed to go on after a crash (own format, never pickle)."""
        ...

    def restore(self, state: bytes) -> None:
        """Inverse of `state`. Raises ValueError when the bytes are not of this policy."""
        ...


class PolicyFactory(Protocol):
    """How the conductor makes one: `space` is None for tasks without a design space."""

    def __call__(self, space: DesignSpace | None, seed: int) -> Policy: ...
