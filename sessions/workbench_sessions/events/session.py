"""The session itself: opened, its engine, its budget, its phases, its end."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from workbench_sessions.events.base import Event, Mode, Value

Phase = Literal["starting", "running", "paused", "stopping", "closed"]


Cap = Literal["evaluations", "time", "tokens", "money", "requests"]


class Budget(Struct, frozen=True):
    """Hard caps of a run; None means no cap. `requests` are those to models, tries that failed included."""

    evaluations: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    money: float | None = None
    requests: int | None = None


class TaskCard(Struct, frozen=True):
    """What a viewer must know of the task, so that a session can be read without the engine."""

    name: str
    title: str
    source_sha256: str
    dims: dict[str, int]
    dtype: str
    bytes_moved: int | None = None
    flops: int | None = None
    world_size: int = 1
    space_size: int | None = None
    dimensions: dict[str, list[Value]] = {}
    dimension_groups: dict[str, str] = {}


class HostCard(Struct, frozen=True):
    """The machine: numbers without it mean nothing."""

    hostname: str
    cpu: str
    cores: int
    memory_bytes: int
    os: str
    python: str
    torch: str
    compiler: str


class SessionOpened(Event, frozen=True):
    session_id: str
    name: str
    task: TaskCard
    backend: str
    policy: str
    seed: int
    budget: Budget
    mode: Mode
    islands: int
    sandbox_level: str
    host: HostCard
    version: str
    output_dir: str = ""
    settings: dict[str, Value] = {}


class EngineStarted(Event, frozen=True):
    """An engine process took the session; `resumed` when an earlier one had left it open."""

    pid: int
    resumed: bool = False


class BudgetSpent(Event, frozen=True):
    """Of the whole session, whoever spent it: the policy's model and the judge's. `requests` None: not told."""

    evaluations: int
    seconds: float
    tokens: int = 0
    money: float = 0.0
    requests: int | None = None


class BudgetChanged(Event, frozen=True):
    budget: Budget


class CapReached(Event, frozen=True):
    """A hard cap ended the search; `text` says how much was spent of what."""

    cap: Cap
    text: str


class ModeChanged(Event, frozen=True):
    mode: Mode


class PhaseChanged(Event, frozen=True):
    phase: Phase
    reason: str = ""


class WarningRaised(Event, frozen=True):
    text: str
    remedy: str = ""


class SessionClosed(Event, frozen=True):
    """`outcome`: "budget", "stopped", "exhausted", "failed"."""

    outcome: str
    best: str | None = None
    reason: str = ""
