"""Honest and dishonest candidates on a real bench: real compiler, real cage, real torch."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from workbench_engine.backends.cpu import CpuBuilder
from workbench_engine.sandbox.level import probe
from workbench_sessions.events import (
    FindingRaised,
    FloorMeasured,
    PairsTimed,
    StageStarted,
    VerdictReached,
    VerifyFinished,
)

if TYPE_CHECKING:
    from conftest import Judged  # type: ignore[import-not-found]

BODY = """
extern "C" float expf(float);
extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
    const float* x = (const float*)in[0];
    const float* w = (const float*)in[1];
    const float* b = (const float*)in[2];
    float* y = (float*)out[0];
    long long rows = dim[0], cols = dim[1];
    %s
}
"""
LOOP = """for (long long r = 0; r < rows; ++r)
        for (long long c = 0; c < cols; ++c) {
            float v = x[r*cols+c], s = v / (1.0f + expf(-v*w[c])) + b[c];
            y[r*cols+c] = s < -0.25f ? -0.25f : s;
        }"""
HONEST = BODY % LOOP


def judge_kernel(judged: Judged, libraries: Path, text: str, profile: str = "search") -> VerdictReached:
    """Build and judge one kernel; events of this candidate alone stay in `judged.events`."""
    judged.events.clear()
    builder = CpuBuilder(probe(), libraries)
    build = asyncio.run(builder.build(text, sorted(os.sched_getaffinity(0))))
    assert build.ok, build.log
    verdict: VerdictReached = judged.bench.judge("c1", "kernel", text, build.path, profile, 0.0, 0, [])
    return verdict


def judge_module(judged: Judged, text: str) -> VerdictReached:
    judged.events.clear()
    verdict: VerdictReached = judged.bench.judge("c1", "module", text, "", "search", 0.0, 0, [])
    return verdict


def findings(judged: Judged) -> set[str]:
    return {e.code for e in judged.events if isinstance(e, FindingRaised) and e.severity in ("cheat", "warning")}


CORRECT = {"FASTER", "SLOWER", "SAME", "AMBIGUOUS"}


def test_the_floor_is_measured_and_its_pairs_are_kept(judged: Judged) -> None:
    assert any(isinstance(e, FloorMeasured) for e in judged.floor_events)
    assert sum(len(e.reference_s) for e in judged.floor_events if isinstance(e, PairsTimed)) >= 16


def test_an_honest_kernel_is_verified_on_every_shape_then_timed(judged: Judged, libraries: Path) -> None:
    verdict = judge_kernel(judged, libraries, HONEST)
    assert verdict.verdict in CORRECT, verdict.reason
    assert verdict.speedup is not None and verdict.lower is not None and verdict.upper is not None
    assert verdict.lower <= verdict.speedup <= verdict.upper
    verified = next(e for e in judged.events if isinstance(e, VerifyFinished))
    assert verified.ok and {c.name.split("/")[0] for c in verified.checks} == {"cpu", "hidden-0", "hidden-1"}
    assert [e.stage for e in judged.events if isinstance(e, StageStarted)] == ["verify", "time"]
    timed = [e for e in judged.events if isinstance(e, PairsTimed)]
    assert sum(len(e.reference_s) for e in timed) == verdict.pairs >= 8
    assert verdict.sandbox_level.startswith("bwrap+seccomp") and len(verdict.seed) == 32
    assert not findings(judged)


def test_a_slow_kernel_is_slower(judged: Judged, libraries: Path) -> None:
    slow = LOOP.replace(
        "float v =", "volatile float waste = 1; for (int i = 0; i < 200; ++i) waste = waste * 0.5f; float v ="
    )
    assert judge_kernel(judged, libraries, BODY % slow).verdict == "SLOWER"


def test_a_fresh_final_measurement_is_marked_confirmed(judged: Judged, libraries: Path) -> None:
    verdict = judge_kernel(judged, libraries, HONEST, "final")
    assert verdict.confirmed and verdict.pairs >= 30


WRONG = {
    "off by one": LOOP.replace("c < cols", "c < cols - 1"),
    "skipped tail": LOOP.replace("c < cols", "c < cols / 8 * 8"),
    "dropped row": LOOP.replace("r < rows", "r < rows - (rows > 2)"),
    "wrong constant": LOOP.replace("-0.25f", "-0.26f"),
    "forgotten bias": LOOP.replace("+ b[c]", ""),
    "forgotten weight": LOOP.replace("-v*w[c]", "-v"),
    "zeros": LOOP.replace("= s <", "= 0 * s; s = s <"),
    "NaN": LOOP.replace("= s < -0.25f", "= r == 2 ? 0.0f/0.0f : s < -0.25f"),
    "nothing": "",
    "half precision": LOOP.replace(
        "= s <", "= (_Float16)s; y[r*cols+c] = y[r*cols+c] < -0.25f ? -0.25f : y[r*cols+c]; s = s <"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_are_wrong(judged: Judged, libraries: Path, name: str) -> None:
    verdict = judge_kernel(judged, libraries, BODY % WRONG[name])
    assert verdict.verdict == "WRONG"
    assert verdict.speedup is None and "wrong on" in verdict.reason
    assert not any(isinstance(e, PairsTimed) for e in judged.events)


CHEATS = {
    "input-mutation": LOOP + " ((float*)in[0])[0] = 0.5f;",
    "state-mutation": LOOP + " ((float*)in[1])[0] += 1.0f;",
    "out-of-bounds": LOOP + " y[rows*cols] = 1.0f;",
}


@pytest.mark.parametrize("finding", CHEATS)
def test_writing_where_one_must_not_is_named(judged: Judged, libraries: Path, finding: str) -> None:
    verdict = judge_kernel(judged, libraries, BODY % CHEATS[finding])
    assert verdict.verdict == "WRONG" and findings(judged) == {finding}


def test_honest_at_first_then_idle_is_cheating(judged: Judged, libraries: Path) -> None:
    body = f"static int calls = 0; if (++calls > 40) return;\n{LOOP}"
    verdict = judge_kernel(judged, libraries, BODY % body)
    assert verdict.verdict == "CHEATING" and findings(judged) == {"unwritten-output"}


FATAL = {
    "crash": ("*(volatile int*)0 = 1;", "SIGSEGV"),
    "abort": ("__builtin_trap();", "ended"),
    "hang": ('for (;;) asm volatile("");', "killed"),
    "exit": ('extern "C" void _exit(int); _exit(0);', "ended"),
}


@pytest.mark.parametrize("name", FATAL)
def test_a_candidate_that_dies_fails_and_the_next_one_is_fine(judged: Judged, libraries: Path, name: str) -> None:
    code, words = FATAL[name]
    declare, body = ('extern "C" void _exit(int);\n', "_exit(0);") if name == "exit" else ("", code)
    verdict = judge_kernel(judged, libraries, declare + BODY % body)
    assert verdict.verdict == "FAILED" and words in verdict.reason
    assert judge_kernel(judged, libraries, HONEST).verdict in CORRECT


MODULE = """
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, cols=512):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        y = torch.clamp(torch.sigmoid(x * self.weight) * x + self.bias, min=-0.25)
        return %s
"""

MODULES = {
    "y": None,
    "y.double()": "dtype",
    "y[:1]": "shape",
    "y.numpy()": "not a torch.Tensor",
    "[y, y]": "2 outputs",
    "1 / 0": "ZeroDivisionError",
    "exit(0)": "SystemExit",
    "y * 1.001": "wrong on",
}


@pytest.mark.parametrize("expression", MODULES)
def test_modules(judged: Judged, expression: str) -> None:
    words = MODULES[expression]
    verdict = judge_module(judged, MODULE % expression)
    if words is None:
        assert verdict.verdict in CORRECT, verdict.reason
    else:
        assert verdict.verdict in ("FAILED", "WRONG") and words in verdict.reason


def test_a_module_without_modelnew_or_with_a_syntax_error_says_so(judged: Judged) -> None:
    assert "no class ModelNew" in judge_module(judged, "x = 1").reason
    assert "SyntaxError" in judge_module(judged, "def (").reason
