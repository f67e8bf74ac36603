"""The search: who was proposed and why, what the policy learned, what islands exchanged."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from workbench_sessions.events.base import Event, Value


class Origin(Struct, frozen=True, gc=False):
    """Who made a candidate: `policy` is "design-space", "random", "best-of-n", "llm", "person", "seed"."""

    policy: str
    model: str | None = None
    patch: str | None = None
    prompt: str | None = None
    person: str | None = None
    version: int | None = None
    answer: int | None = None
    """Which answer to `prompt` it came from, the first is 0."""


class Exemplar(Struct, frozen=True, gc=False):
    """One code a proposal was conditioned on: "slow" or "fast" (CUDA-L1 stage 3), with the score shown."""

    candidate: str
    score: float
    role: str


class CandidateProposed(Event, frozen=True):
    candidate: str
    kind: Literal["kernel", "module", "ranks"]
    source_sha256: str
    origin: Origin
    island: int
    generation: int
    parents: list[str] = []
    point: dict[str, Value] | None = None
    group: int | None = None
    exemplars: list[Exemplar] = []
    note: str = ""


class IslandMigrated(Event, frozen=True):
    source: int
    target: int
    candidate: str


class MemoryRevised(Event, frozen=True):
    text: str


DOES_NOT_LEARN = "this policy does not learn"
"""`PolicyUpdated.skipped` of a policy without a learning step."""


class PolicyUpdated(Event, frozen=True):
    """One learning step on one group. `group_mean`/`group_std` are of ln speedup rewards; `best` is a ratio so far."""

    step: int
    group: int
    evaluations: int
    candidates: list[str]
    rewards: list[float]
    advantages: list[float]
    group_mean: float
    group_std: float
    success_rate: float
    best: float | None = None
    loss: float | None = None
    entropy: float | None = None
    kl: float | None = None
    grad_norm: float | None = None
    version: int = 0
    skipped: str = ""
