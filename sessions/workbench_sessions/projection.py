"""What is: the state every screen reads, a fold of the events.

The structs here are values (frozen); the `Projection` around them is the one mutable accumulator, changed by `fold`
alone. Live, replay, report and resume all read the same structs. `gc=False` keeps these hundred thousands of acyclic
values out of the garbage collector's rounds, which would otherwise stall a screen.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from workbench_sessions.events import (
    Activity,
    Budget,
    Check,
    Exemplar,
    HostCard,
    Mode,
    Origin,
    Phase,
    Severity,
    Stage,
    TaskCard,
    Value,
    Verdict,
)


class Finding(Struct, frozen=True, gc=False):
    code: str
    severity: Severity
    text: str
    evidence: dict[str, Value] = {}


class Candidate(Struct, frozen=True, gc=False):
    """One row of the population. Heavy things (pairs, logs, checks) live in `Details`, fetched by id."""

    id: str
    kind: str
    source_sha256: str
    origin: Origin
    island: int
    generation: int
    parents: list[str]
    proposed_seq: int
    proposed_at_s: float
    stage: Stage = "proposed"
    device: str | None = None
    verdict: Verdict | None = None
    speedup: float | None = None
    lower: float | None = None
    upper: float | None = None
    pairs: int = 0
    reference_s: float | None = None
    candidate_s: float | None = None
    delta: float | None = None
    confirmed: bool = False
    threads_speedup: float | None = None
    roofline_fraction: float | None = None
    reward: float | None = None
    reason: str = ""
    evaluation: int | None = None
    group: int | None = None
    pinned: bool = False
    decision: str | None = None
    """None, "accepted", "rejected" or "review" (waits for a person)."""
    decision_reason: str = ""
    accepted_path: str = ""
    findings: int = 0
    changed_seq: int = 0


class Details(Struct, frozen=True, gc=False):
    """What the detail pane shows of one candidate besides its row."""

    point: dict[str, Value] | None = None
    exemplars: list[Exemplar] = []
    note: str = ""
    build_s: float | None = None
    build_cached: bool = False
    build_log: str = ""
    verify_s: float | None = None
    checks: list[Check] = []
    feedback: str = ""
    findings: list[Finding] = []
    sandbox_level: str = ""


RequestState = Literal["waiting", "streaming", "answered", "failed", "lost"]
"""Of a prompt: no word yet, its first answer grows, whole answers are there, none came, nobody listens any more."""


class Reply(Struct, frozen=True, gc=False):
    """One whole answer. Its texts are in the session under their hashes ("" = none)."""

    answer: int
    finish: str
    text_sha256: str = ""
    reasoning_sha256: str = ""
    problem: str = ""
    """Why no candidate came of it."""


class Request(Struct, frozen=True, gc=False):
    """One prompt and what came of it; sums over its answers, None = not told. Never a text."""

    prompt: str
    model: str
    text_sha256: str
    sent_seq: int
    sent_at_s: float
    changed_seq: int
    endpoint: str = ""
    patch: str = ""
    group: int | None = None
    parents: list[str] = []
    exemplars: list[Exemplar] = []
    repairs: str = ""
    asked: int = 1
    state: RequestState = "waiting"
    streamed: int = 0
    """Characters of the first answer so far."""
    first_at_s: float | None = None
    """Unix seconds of the first piece."""
    restarts: int = 0
    replies: list[Reply] = []
    candidates: list[str] = []
    tokens_in: int | None = None
    tokens_out: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    first_token_s: float | None = None
    estimated: bool = False
    wasted_tokens: int = 0
    wasted_cost: float = 0.0
    ended_at_s: float | None = None
    wait: Wait | None = None
    """Why it is not being asked at present; None while it is, and when it is over."""


class Wait(Struct, frozen=True, gc=False):
    """Nothing is asked before `until_s` (unix seconds). `limited`: a rate limit (429); `attempt` counts from 1."""

    until_s: float
    reason: str
    limited: bool = False
    attempt: int = 1
    attempts: int = 0


class PairSeries(Struct, frozen=True, gc=False):
    """The newest run of pairs of one candidate on one device: reference and candidate seconds per call."""

    candidate: str
    device: str
    phase: str
    calls: int
    threads: int
    reference_s: list[float]
    candidate_s: list[float]


class LaneSpan(Struct, frozen=True, gc=False):
    """What a device did from `start_s` to `end_s` (unix seconds; end None = still)."""

    activity: Activity
    candidate: str | None
    start_s: float
    end_s: float | None = None


class Sample(Struct, frozen=True, gc=False):
    """One telemetry reading; None = the device cannot tell."""

    at_s: float
    utilisation: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    clock_hz: float | None = None
    temperature_c: float | None = None
    throttle: str | None = None
    load: float | None = None


class Device(Struct, frozen=True, gc=False):
    id: str
    kind: str
    name: str
    cores: int = 0
    memory_bytes: int = 0
    note: str = ""
    activity: Activity = "idle"
    candidate: str | None = None
    delta: float | None = None
    too_noisy: bool = False


class PolicyStep(Struct, frozen=True, gc=False):
    """One point of the reward curves."""

    at_s: float
    seq: int
    step: int
    group: int
    evaluations: int
    group_mean: float
    group_std: float
    success_rate: float
    best: float | None
    loss: float | None
    entropy: float | None
    kl: float | None
    grad_norm: float | None
    tokens: int = 0
    money: float = 0.0
    """Spent by then."""


class BestPoint(Struct, frozen=True, gc=False):
    """The best confirmed-or-not FASTER speedup after `evaluations` evaluations."""

    at_s: float
    seq: int
    evaluations: int
    speedup: float
    candidate: str
    tokens: int = 0
    money: float = 0.0
    """Spent by then."""


class Mark(Struct, frozen=True, gc=False):
    """An interesting instant for the transport bar: kind "best", "accept", "reject", "cheat", "phase", "warning"."""

    seq: int
    at_s: float
    kind: str
    text: str


class LogLine(Struct, frozen=True, gc=False):
    seq: int
    at_s: float
    level: str
    text: str


class Header(Struct, frozen=True):
    """The session's identity and present state, one line's worth."""

    session_id: str = ""
    name: str = ""
    task: TaskCard | None = None
    backend: str = ""
    policy: str = ""
    seed: int = 0
    budget: Budget = Budget()
    mode: Mode = "auto"
    islands: int = 1
    sandbox_level: str = ""
    host: HostCard | None = None
    version: str = ""
    output_dir: str = ""
    settings: dict[str, Value] = {}
    phase: Phase = "starting"
    phase_reason: str = ""
    engine_pid: int | None = None
    opened_at_s: float = 0.0
    closed: bool = False
    outcome: str = ""
    cap: str = ""
    """The hard cap that ended the search ("tokens"); "" = none did."""
    steering: str = ""


class Spending(Struct, frozen=True):
    """Tokens, money and requests that asking models has cost."""

    tokens: int = 0
    money: float = 0.0
    requests: int = 0


class Counts(Struct, frozen=True):
    """Tallies over all candidates, kept incrementally."""

    proposed: int = 0
    building: int = 0
    verifying: int = 0
    timing: int = 0
    done: int = 0
    faster: int = 0
    slower: int = 0
    same: int = 0
    ambiguous: int = 0
    wrong: int = 0
    failed: int = 0
    cheating: int = 0
    accepted: int = 0
    rejected: int = 0
    review: int = 0


class Projection(Struct):
    """The whole visible state after `seq` events. Mutated only by `fold`."""

    seq: int = 0
    at_s: float = 0.0
    header: Header = Header()
    counts: Counts = Counts()
    candidates: dict[str, Candidate] = field(default_factory=dict)
    details: dict[str, Details] = field(default_factory=dict)
    devices: dict[str, Device] = field(default_factory=dict)
    lanes: dict[str, list[LaneSpan]] = field(default_factory=dict)
    telemetry: dict[str, list[Sample]] = field(default_factory=dict)
    pairs: dict[str, PairSeries] = field(default_factory=dict)
    """By candidate: the most recent ones only (`bounds.PAIR_SERIES_KEPT`); older ones from the file, `pair_series`."""
    current_pairs: dict[str, PairSeries] = field(default_factory=dict)
    """By device: the series now being timed, or the last one."""
    policy_steps: list[PolicyStep] = field(default_factory=list)
    best_curve: list[BestPoint] = field(default_factory=list)
    best: str | None = None
    """Candidate id of the best refereed FASTER one not rejected by a person."""
    migrations: list[tuple[int, int, str, float]] = field(default_factory=list)
    """(source island, target island, candidate, at_s)."""
    marks: list[Mark] = field(default_factory=list)
    log: list[LogLine] = field(default_factory=list)
    memory: str = ""
    evaluations: int = 0
    spent_seconds: float = 0.0
    spent_tokens: int = 0
    spent_money: float = 0.0
    """Of all answers received; what the engine said last of it agrees."""
    spent_requests: int = 0
    """Requests made to models, tries that failed included."""
    judged: Spending = Spending()
    """The part of what is spent that went to the judge's model."""
    wait: Wait | None = None
    """While the policy is away: when it is tried again."""
    prompts: int = 0
    requests: dict[str, Request] = field(default_factory=dict)
    """By prompt, in the order they were sent."""
    last_event_at_s: float = 0.0
    unknown_events: int = 0
