"""Devices and the cascade: built, verified, timed, found, judged."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from workbench_sessions.events.base import Event, Severity, Stage, Value, Verdict

Activity = Literal["idle", "propose", "build", "verify", "time"]


class Check(Struct, frozen=True, gc=False):
    """One correctness check: `margin` is error / allowed (<= 1 passes); `worst_index` is flat."""

    name: str
    ok: bool
    margin: float | None = None
    detail: str = ""
    worst_index: int | None = None


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
