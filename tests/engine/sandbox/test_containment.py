"""Every candidate that tries to break out is judged on a real bench, and an honest one right after it.

In most of them the right answer is the loot: they pass only if the attack worked.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from workbench.benching.trials import Trial, read_trial

if TYPE_CHECKING:
    from conftest import Court  # type: ignore[import-not-found]

TESTS = Path(__file__).parent.parent.parent
LONGEST_S = 120.0
"""Starting a worker, the longest deadline and killing what ran into it, on a busy machine."""
TWICE = {"leaves_state.py"}
IN_THE_COMPILER = {
    f"{name}.cpp"
    for name in ("includes_host_files", "includes_endless_file", "assembles_host_files", "endless_compilation")
}
CORRECT = {"FASTER", "SLOWER", "SAME", "AMBIGUOUS"}


def trials(folder: str) -> list[Trial]:
    paths = sorted((TESTS / folder / "containment").glob("*.*"))
    return [trial for trial in map(read_trial, paths) if trial is not None]


EXPLOITS, CONTROLS = trials("exploits"), trials("controls")
HONEST = next(t for t in CONTROLS if t.name == "prints_a_little.cpp")


@pytest.mark.parametrize("exploit", EXPLOITS, ids=lambda t: t.name)
def test_it_is_contained_and_the_next_candidate_is_judged(court: Court, exploit: Trial) -> None:
    if exploit.name in TWICE:
        court.judge(exploit)
    start = time.monotonic()
    verdict = court.judge(exploit)
    took_s = time.monotonic() - start
    assert verdict.verdict in exploit.verdicts, (verdict.reason, court.findings)
    stopped_by_the_compiler = verdict.reason.startswith(("does not compile", "the compiler took"))
    assert stopped_by_the_compiler == (exploit.name in IN_THE_COMPILER), verdict.reason
    assert not exploit.findings or court.findings & set(exploit.findings)
    assert took_s < LONGEST_S
    assert not {c for c in verdict.reason if ord(c) < 32 and c not in "\n\t"}, "control characters reach the terminal"
    after = court.judge(HONEST)
    assert after.verdict in CORRECT and not court.findings, after.reason


@pytest.mark.parametrize("control", CONTROLS, ids=lambda t: t.name)
def test_the_same_means_used_honestly_pass(court: Court, control: Trial) -> None:
    verdict = court.judge(control)
    assert verdict.verdict in CORRECT and not court.findings, (verdict.reason, court.findings)


def test_every_file_has_a_header_that_names_it() -> None:
    files = [p for folder in ("exploits", "controls") for p in (TESTS / folder / "containment").glob("*.*")]
    assert len(files) == len(EXPLOITS) + len(CONTROLS)
    for trial in (*EXPLOITS, *CONTROLS):
        assert trial.title == trial.path.stem and trial.task == "softmax_rows" and trial.mechanism
        assert (set(trial.verdicts) == CORRECT) == (trial.role == "control")
