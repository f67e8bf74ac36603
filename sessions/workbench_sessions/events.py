"""What happened: the facts a session is made of, in the past tense.

Everything shown is a fold of these. Kinds may be added; the meaning of one never changes. Unknown kinds decode to
`UnknownEvent` and are shown as such. Field names ending in `_s` are seconds, in `_bytes` bytes. Speedups are ratios
t_reference / t_candidate (1.0 = as fast as the reference), never percentages.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

Verdict = Literal["FASTER", "SLOWER", "SAME", "AMBIGUOUS", "WRONG", "FAILED", "CHEATING"]
Stage = Literal["proposed", "build", "verify", "time", "judge", "done"]
Activity = Literal["idle", "propose", "build", "verify", "time"]
Phase = Literal["starting", "running", "paused", "stopping", "closed"]
Mode = Literal["auto", "review"]
Severity = Literal["info", "label", "warning", "cheat"]
Value = str | int | float | bool


class Budget(Struct, frozen=True):
    """Hard caps of a run; None means no cap."""

    evaluations: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    money: float | None = None


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


class Exemplar(Struct, frozen=True, gc=False):
    """One code a proposal was conditioned on: "slow" or "fast" (CUDA-L1 stage 3), with the score shown."""

    candidate: str
    score: float
    role: str


class Check(Struct, frozen=True, gc=False):
    """One correctness check: `margin` is error / allowed (<= 1 passes); `worst_index` is flat."""

    name: str
    ok: bool
    margin: float | None = None
    detail: str = ""
    worst_index: int | None = None


class Event(Struct, frozen=True, tag=True):
    """Base of all facts."""


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


class DeviceSeen(Event, frozen=True):
    device: str
    kind: str
    name: str
    cores: int = 0
    memory_bytes: int = 0
    note: str = ""


class TelemetrySampled(Event, frozen=True):
    """One reading of a device; None = it cannot tell. `utilisation` in 0..1, `clock_hz` in Hz, `load` = loadavg."""

    device: str
    utilisation: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    clock_hz: float | None = None
    temperature_c: float | None = None
    throttle: str | None = None
    load: float | None = None


class ActivityChanged(Event, frozen=True):
    """What a device's lane does from now on."""

    device: str
    activity: Activity
    candidate: str | None = None


class FloorMeasured(Event, frozen=True):
    """A/A: the reference against itself. `delta` is the floor on |ln speedup| below which nothing is claimed."""

    device: str
    delta: float
    medians: list[float]
    too_noisy: bool = False
    between: float = 0.0
    """Standard deviation of ln speedup between two processes of the same code, which widens every interval."""


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


class PromptSent(Event, frozen=True):
    """A model was asked. The rendered prompt is stored under its hash.

    `patch`: "full", "diff", "cross", or "repair" of the candidate or prompt named in `repairs`. `group` is that of the
    candidates that come of it; `answers` how many were asked for.
    """

    prompt: str
    model: str
    text_sha256: str
    endpoint: str = ""
    patch: str = ""
    group: int | None = None
    parents: list[str] = []
    exemplars: list[Exemplar] = []
    repairs: str = ""
    answers: int = 1


class ResponseStreamed(Event, frozen=True):
    """More of the first answer, while it is written. `restart`: it starts afresh (the endpoint was asked again)."""

    prompt: str
    text: str
    restart: bool = False


class ResponseReceived(Event, frozen=True):
    """One answer, whole. Tokens, cost and seconds of a request stand in its first answer (0 for the others).

    `cost` None: the model has no price. `finish`: "stop", "length" (cut off), "refusal", "other", or "failed" (no
    answer came, `problem` says why). `analysis` and `design` are the sections of that name, capped. `problem` says why
    no candidate came of it.
    """

    prompt: str
    model: str
    text_sha256: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    seconds: float | None = None
    candidates: list[str] = []
    answer: int = 0
    endpoint: str = ""
    finish: str = ""
    cached_tokens: int | None = None
    first_token_s: float | None = None
    estimated: bool = False
    reasoning_sha256: str = ""
    analysis: str = ""
    design: str = ""
    problem: str = ""
    wasted_tokens: int = 0
    wasted_cost: float = 0.0
    """Of tries that failed before this answer came (or none did)."""
    tokens_sha256: str = ""
    """Names the stored `{"ids": [...], "logprobs": [...]}` of the sampled tokens, where the server told them."""


class ExchangeRecorded(Event, frozen=True):
    """One request to a model and its whole answer, so that the run can be done again without the model.

    `request` is the sha256 of the request's content, `n` the answers asked for; the answer is stored by its hash.
    """

    request: str
    exchange_sha256: str
    n: int = 1
    seed: int | None = None


class ServerReported(Event, frozen=True):
    """What a model server of this run is at: `state` is "starting", "ready", "ended" or "failed"."""

    server: str
    state: str
    text: str
    seconds: float = 0.0


class StageStarted(Event, frozen=True):
    candidate: str
    stage: Stage
    device: str


class BuildFinished(Event, frozen=True):
    """`log` is the compiler's output, capped; `feedback` is text fit for the next prompt or the person."""

    candidate: str
    ok: bool
    seconds: float
    cached: bool = False
    binary_sha256: str = ""
    log: str = ""
    feedback: str = ""


class VerifyFinished(Event, frozen=True):
    candidate: str
    ok: bool
    seconds: float
    checks: list[Check]
    feedback: str = ""
    precision: str = ""
    """The precision class that the errors of the timed shape's answer show ("" = not measured)."""


class PairsTimed(Event, frozen=True):
    """Raw paired timings, appended in batches: item i of each list is one pair (seconds per call, outside clock).

    `claimed_s` is what the candidate's own process said of the same calls; `order` is "AB" or "BA" for each pair
    (A = reference). `calls` is the inner batch of a pair.
    """

    candidate: str
    device: str
    phase: Literal["floor", "search", "final", "threads"]
    reference_s: list[float]
    candidate_s: list[float]
    claimed_s: list[float] = []
    order: list[str] = []
    calls: int = 1
    threads: int = 1


class FindingRaised(Event, frozen=True):
    candidate: str
    code: str
    severity: Severity
    text: str
    evidence: dict[str, Value] = {}


class VerdictReached(Event, frozen=True):
    """The engine's judgement. `speedup`, `lower`, `upper` are ratios, present only when timing happened.

    `confirmed` says that a fresh process with fresh seeds measured it again (the number is then of that run).
    `reward` is what a learning policy was given. `spent_s`: seconds by part of the measurement (not the build).
    """

    candidate: str
    verdict: Verdict
    speedup: float | None = None
    lower: float | None = None
    upper: float | None = None
    pairs: int = 0
    reference_s: float | None = None
    candidate_s: float | None = None
    delta: float | None = None
    confirmed: bool = False
    threads: int = 1
    threads_speedup: float | None = None
    roofline_fraction: float | None = None
    reward: float | None = None
    sandbox_level: str = ""
    reason: str = ""
    evaluation: int | None = None
    seed: str = ""
    """Of the check inputs and pair order, revealed after the fact (hex)."""
    spent_s: dict[str, float] = {}


class HumanAccepted(Event, frozen=True):
    candidate: str
    reason: str = ""
    path: str = ""
    person: str = ""


class HumanRejected(Event, frozen=True):
    candidate: str
    reason: str = ""
    person: str = ""


class DecisionUndone(Event, frozen=True):
    candidate: str
    person: str = ""


class CandidatePinned(Event, frozen=True):
    candidate: str
    pinned: bool


class ReviewRequested(Event, frozen=True):
    """Review mode: the candidate waits for a person before it can be a parent."""

    candidate: str


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


class BudgetSpent(Event, frozen=True):
    evaluations: int
    seconds: float
    tokens: int = 0
    money: float = 0.0


class BudgetChanged(Event, frozen=True):
    budget: Budget


class ModeChanged(Event, frozen=True):
    mode: Mode


class PhaseChanged(Event, frozen=True):
    phase: Phase
    reason: str = ""


class SteeringGiven(Event, frozen=True):
    text: str
    replace: bool = False


class CommandRefused(Event, frozen=True):
    command: int
    reason: str


class WarningRaised(Event, frozen=True):
    text: str
    remedy: str = ""


class SessionClosed(Event, frozen=True):
    """`outcome`: "budget", "stopped", "exhausted", "failed"."""

    outcome: str
    best: str | None = None
    reason: str = ""


class UnknownEvent(Event, frozen=True):
    """A kind this version does not know: kept, shown, never an error."""

    kind: str
    body: str


KINDS: dict[str, type[Event]] = {cls.__name__: cls for cls in Event.__subclasses__() if cls is not UnknownEvent}
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {}
_ENCODER = msgspec.json.Encoder()


def kind_of(event: Event) -> str:
    """The name stored in the `kind` column."""
    return event.kind if isinstance(event, UnknownEvent) else type(event).__name__


def encode(event: Event) -> str:
    """JSON body of an event. Characters that UTF-8 cannot carry (undecodable bytes of a log) become "?"."""
    if isinstance(event, UnknownEvent):
        return event.body
    try:
        return _ENCODER.encode(event).decode()
    except UnicodeEncodeError:
        return _ENCODER.encode(_writable(msgspec.to_builtins(event))).decode()


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_writable(one) for one in value]
    if isinstance(value, dict):
        return {_writable(key): _writable(one) for key, one in value.items()}
    return value


def decode(kind: str, body: str | bytes) -> Event:
    """The event of one row. An unknown or unreadable one comes back as `UnknownEvent`, never as an exception."""
    cls = KINDS.get(kind)
    if cls is not None:
        decoder = _DECODERS.get(kind)
        if decoder is None:
            decoder = _DECODERS[kind] = msgspec.json.Decoder(cls)
        try:
            return decoder.decode(body)  # type: ignore[no-any-return]
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    return UnknownEvent(kind=kind, body=text)


class Stamped(Struct, frozen=True):
    """An event in its place: `seq` orders, `at_s` (unix seconds) is for people, `mono_s` measures."""

    seq: int
    at_s: float
    mono_s: float
    event: Event
