"""What a policy is: given what is known, propose candidates; given their rewards, learn.

The conductor draws parents and exemplars (`search`, `rl`), asks for one group, runs the cascade on every proposal and
gives the rewards back. A policy never sees the reference, a tolerance or a verdict's inner workings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

from workbench_engine.llm.settings import LlmSettings
from workbench_engine.llm.vllm_settings import VllmSettings
from workbench_engine.tasks.contract import Task
from workbench_engine.tasks.design import DesignPoint, DesignSpace
from workbench_sessions.events import Budget, Event, HostCard, Origin

FailedStage = Literal["", "build", "verify", "time", "judge"]
"""Where a candidate failed; "" = it did not."""


class Scored(Struct, frozen=True):
    """A judged candidate as a policy may know it: `speedup` is a ratio, None when it is not correct.

    `feedback` says what was wrong, `failed` at which stage.
    """

    candidate: str
    text: str
    point: DesignPoint | None
    speedup: float | None
    verdict: str
    island: int
    generation: int
    feedback: str = ""
    failed: FailedStage = ""


class Remark(Struct, frozen=True):
    """A person's decision about a candidate, with the reason given."""

    candidate: str
    accepted: bool
    reason: str


class Context(Struct, frozen=True):
    """What one group of proposals is conditioned on. `exemplars` are slow to fast (CUDA-L1 stage 3: N = 2).

    `failures` are the latest incorrect candidates, newest first; `remarks` what people said, newest first.
    """

    task: str
    group: int
    island: int
    parents: tuple[Scored, ...] = ()
    exemplars: tuple[Scored, ...] = ()
    steering: str = ""
    failures: tuple[Scored, ...] = ()
    remarks: tuple[Remark, ...] = ()
    budget: Budget = Budget()


class Proposal(Struct, frozen=True):
    """One candidate to try. `text` is the file (`.cpp` or `.py`); `sample` lets the policy learn from it.

    `parents` are the candidates that it was really made from; None leaves that to the context.
    """

    kind: str
    text: str
    origin: Origin
    point: DesignPoint | None = None
    sample: int | None = None
    note: str = ""
    parents: tuple[str, ...] | None = None


class Outcome(Struct, frozen=True):
    """What became of a proposal. `reward` is ln speedup, clipped, with fixed penalties for not built or wrong."""

    sample: int | None
    reward: float
    correct: bool
    speedup: float | None
    candidate: str = ""
    failed: FailedStage = ""
    feedback: str = ""


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


class PolicyUnavailable(Exception):
    """Nothing can be proposed at present: the run pauses and asks again. `str()` is one line for the person."""

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class PolicySpent(Exception):
    """A hard cap of the policy is reached: the run ends with what it has. `str()` says which."""


class PolicyFailed(Exception):
    """The policy cannot go on until a person mends something. `str()` is one line; `remedy` says what."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.remedy = remedy


class NothingUsable(Exception):
    """This time nothing came of it; the next time something may. `str()` says why."""


class Policy(Protocol):
    """Implementations: `random`, `best-of-n`, `design-space` (trained on the spot), `llm`, `manual`."""

    name: str

    async def propose(self, context: Context, n: int) -> list[Proposal]:
        """Up to `n` proposals for one group; an empty list means that the policy has nothing more to offer.

        Raises PolicyUnavailable, PolicySpent, PolicyFailed, NothingUsable.
        """
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


Say = Callable[[Event, Mapping[str, str]], None]
"""Tells a fact; the texts, by their hash, are stored before it. May be called from any thread."""


class Brief(Struct, frozen=True, kw_only=True):
    """What a policy that writes code must know of the run. `case` is the timed shapes' name.

    `prompts`, `spent_tokens`, `spent_money` are what earlier engines of this session used; `folder` is where prompts
    for a person go.
    """

    task: Task
    case: str
    backend: str
    host: HostCard
    seed: int
    llm: LlmSettings
    say: Say
    folder: Path
    budget: Budget = Budget()
    prompts: int = 0
    spent_tokens: int = 0
    spent_money: float = 0.0
    vllm: VllmSettings = VllmSettings()


@runtime_checkable
class Briefed(Protocol):
    """A policy that is told about the run before it proposes, that works on several groups at once, and that closes."""

    in_flight: int
    """How many calls of `propose` may be open together. Known after `brief`."""

    answers: int
    """How many proposals one call gives at most, however many are asked for. Known after `brief`."""

    def brief(self, brief: Brief) -> None:
        """Raises ValueError, in one line with what to do, when the settings cannot be used."""
        ...

    async def aclose(self) -> None: ...


class PolicyFactory(Protocol):
    """How the conductor makes one: `space` is None for tasks without a design space."""

    def __call__(self, space: DesignSpace | None, seed: int) -> Policy: ...
