"""What happened: the facts a session is made of, in the past tense.

Everything shown is a fold of these. Kinds may be added; the meaning of one never changes. Unknown kinds decode to
`UnknownEvent` and are shown as such. Field names ending in `_s` are seconds, in `_bytes` bytes. Speedups are ratios
t_reference / t_candidate (1.0 = as fast as the reference), never percentages.
"""

from __future__ import annotations

from workbench_sessions.events.base import Event, Mode, Severity, Stage, Value, Verdict
from workbench_sessions.events.decisions import (
    CandidatePinned,
    CommandRefused,
    DecisionUndone,
    HumanAccepted,
    HumanRejected,
    ReviewRequested,
    SteeringGiven,
)
from workbench_sessions.events.llm import (
    ExchangeRecorded,
    PromptSent,
    ResponseReceived,
    ResponseStreamed,
    ServerReported,
)
from workbench_sessions.events.measuring import (
    Activity,
    ActivityChanged,
    BuildFinished,
    Check,
    DeviceSeen,
    FindingRaised,
    FloorMeasured,
    PairsTimed,
    StageStarted,
    TelemetrySampled,
    VerdictReached,
    VerifyFinished,
)
from workbench_sessions.events.search import (
    DOES_NOT_LEARN,
    CandidateProposed,
    Exemplar,
    IslandMigrated,
    MemoryRevised,
    Origin,
    PolicyUpdated,
)
from workbench_sessions.events.session import (
    Budget,
    BudgetChanged,
    BudgetSpent,
    EngineStarted,
    HostCard,
    ModeChanged,
    Phase,
    PhaseChanged,
    SessionClosed,
    SessionOpened,
    TaskCard,
    WarningRaised,
)
from workbench_sessions.events.wire import KINDS, Stamped, UnknownEvent, decode, encode, kind_of

__all__ = [
    "DOES_NOT_LEARN",
    "KINDS",
    "Activity",
    "ActivityChanged",
    "Budget",
    "BudgetChanged",
    "BudgetSpent",
    "BuildFinished",
    "CandidatePinned",
    "CandidateProposed",
    "Check",
    "CommandRefused",
    "DecisionUndone",
    "DeviceSeen",
    "EngineStarted",
    "Event",
    "ExchangeRecorded",
    "Exemplar",
    "FindingRaised",
    "FloorMeasured",
    "HostCard",
    "HumanAccepted",
    "HumanRejected",
    "IslandMigrated",
    "MemoryRevised",
    "Mode",
    "ModeChanged",
    "Origin",
    "PairsTimed",
    "Phase",
    "PhaseChanged",
    "PolicyUpdated",
    "PromptSent",
    "ResponseReceived",
    "ResponseStreamed",
    "ReviewRequested",
    "ServerReported",
    "SessionClosed",
    "SessionOpened",
    "Severity",
    "Stage",
    "StageStarted",
    "Stamped",
    "SteeringGiven",
    "TaskCard",
    "TelemetrySampled",
    "UnknownEvent",
    "Value",
    "Verdict",
    "VerdictReached",
    "VerifyFinished",
    "WarningRaised",
    "decode",
    "encode",
    "kind_of",
]
