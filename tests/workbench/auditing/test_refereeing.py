from __future__ import annotations

import math

import pytest

from workbench.auditing.refereeing import from_facts, overrun, refused
from workbench.auditing.rows import Finding, Outcome
from workbench_sessions.events import (
    Check,
    Event,
    FindingRaised,
    FloorMeasured,
    PairsTimed,
    StageStarted,
    VerdictReached,
    VerifyFinished,
)

BASE = Outcome(
    key="1/1", number=1, level="1", task="1", state="", findings=[Finding("redefined-inputs", "warning", "…")]
)


def timed(phase: str, ratio: float, n: int) -> PairsTimed:
    return PairsTimed("c", "cpu0", phase, [ratio * 1e-3] * n, [1e-3] * n)  # type: ignore[arg-type]


def test_a_verdict_keeps_its_pairs_and_findings() -> None:
    facts: list[Event] = [
        FloorMeasured("cpu0", 0.02, [0.01]),
        timed("floor", 9.0, 4),
        VerifyFinished("c", True, 0.1, [Check("x", True)]),
        timed("final", 2.0, 8),
        timed("final", 2.0, 5),
        FindingRaised("c", "global-flag", "warning", "left a flag"),
        timed("threads", 7.0, 4),
        VerdictReached("c", "FASTER", speedup=2.0, lower=1.9, upper=2.1, pairs=13, delta=0.02, sandbox_level="bwrap"),
    ]
    outcome = from_facts(BASE, facts, device_code=False)
    assert (outcome.state, outcome.speedup, outcome.delta, outcome.sandbox) == ("FASTER", 2.0, 0.02, "bwrap")
    # Neither the floor nor the measurement with threads is in it; an odd last pair has no partner.
    assert outcome.d == pytest.approx([math.log(2.0)] * 6)
    assert [f.code for f in outcome.findings] == ["redefined-inputs", "global-flag"]


@pytest.mark.parametrize(
    "reason",
    [
        "AssertionError: Torch not compiled with CUDA enabled (line 10: …)",
        "RuntimeError: No CUDA GPUs are available",
        "RuntimeError: Found no NVIDIA driver on your system.",
        "OSError: CUDA_HOME environment variable is not set.",
        "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)",
        "RuntimeError: Error building extension 'k'",
        "RuntimeError: 0 active drivers ([]). There should only be one.",
    ],
)
def test_a_failure_for_want_of_a_device_is_named(reason: str) -> None:
    outcome = from_facts(BASE, [VerdictReached("c", "FAILED", reason=reason)], device_code=True)
    assert (outcome.state, outcome.findings[-1].code) == ("FAILED", "needs-device")


def test_another_failure_is_not_blamed_on_the_device() -> None:
    outcome = from_facts(BASE, [VerdictReached("c", "FAILED", reason="ValueError: wrong shape")], device_code=True)
    assert [f.code for f in outcome.findings] == ["redefined-inputs"]
    plain = from_facts(BASE, [VerdictReached("c", "FAILED", reason="Error building extension")], device_code=False)
    assert [f.code for f in plain.findings] == ["redefined-inputs"]


def test_what_ran_instead_of_device_code_is_called_a_fallback() -> None:
    facts: list[Event] = [VerdictReached("c", "SAME", speedup=1.0)]
    assert from_facts(BASE, facts, device_code=True).findings[-1].code == "device-code-idle"
    assert from_facts(BASE, facts, device_code=False).findings[-1].code == "redefined-inputs"


def test_a_right_candidate_that_only_could_not_be_timed_has_not_failed() -> None:
    facts: list[Event] = [StageStarted("c", "verify", "cpu0"), VerifyFinished("c", True, 1.0, [])]
    assert overrun(BASE, facts, 60.0).state == "NOT REFEREED"
    assert "60 s" in overrun(BASE, facts, 60.0).reason


def test_one_that_was_never_found_right_has() -> None:
    outcome = overrun(BASE, [StageStarted("c", "verify", "cpu0")], 60.0)
    assert (outcome.state, "verify" in outcome.reason) == ("FAILED", True)
    assert overrun(BASE, [], 60.0).state == "FAILED"


def test_no_verdict_at_all_is_ours_to_answer_for() -> None:
    assert from_facts(BASE, [], device_code=False).state == "NOT REFEREED"


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("1/11.py: loading the task failed: no answer within 60 s: killed", "NOT REFEREED"),
        ("1/3.py: the reference does not run: a call took more than 60 s: killed", "NOT REFEREED"),
        (
            "1/3.py: get_inputs() raised RuntimeError: [enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't "
            "allocate memory: you tried to allocate 274877906944 bytes",
            "NOT REFEREED",
        ),
        (
            "1/10.py: the output has no spread (std ≤ 0.01 of its size): any constant would nearly match it",
            "TASK REFUSED",
        ),
        ("3/2.py: line 1: not valid Python: '(' was never closed", "TASK REFUSED"),
        ("1/4.py: forward raised RuntimeError: shapes cannot be multiplied (line 9)", "TASK REFUSED"),
    ],
)
def test_a_task_too_large_for_this_machine_is_not_a_useless_one(reason: str, state: str) -> None:
    assert refused(reason)[0] == state
