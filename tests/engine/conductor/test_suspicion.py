"""Badges, warnings and the memory of cheats in a run that stand-ins judge."""

from __future__ import annotations

from pathlib import Path

from tests.engine.conductor.standin import Stage, groups

from workbench_engine.conducting.suspicion import MOST_QUESTIONS, Asking, asking
from workbench_engine.llm.settings import LlmSettings
from workbench_engine.referee.adversary.cases import Cases, case_of
from workbench_engine.settings import RunSettings
from workbench_sessions import events as ev

THREADED = 'extern "C" void kernel_run() { std::thread t(work); t.detach(); }'


def findings(stage: Stage, code: str) -> list[ev.FindingRaised]:
    return [e for e in stage.events() if isinstance(e, ev.FindingRaised) and e.code == code]


def text(words: str, said: str) -> str:
    return f"// {said}\n{words}\n"


def test_badges_are_given_once_and_before_the_verdict(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.run(groups([text(THREADED, "speedup=1.5 final=1.4")]))
    (badge,) = findings(stage, "advice")
    assert (badge.candidate, badge.severity, badge.evidence["kind"]) == ("c00001", "label", "thread")
    kinds = [type(e).__name__ for e in stage.events()]
    assert kinds.index("FindingRaised") < kinds.index("VerdictReached")
    assert kinds.count("VerdictReached") == 2


def test_a_caught_cheat_is_remembered(tmp_path: Path) -> None:
    cases = tmp_path / "cheats.db"
    stage = Stage(tmp_path, cases=str(cases))
    stage.run(groups([text(THREADED, "verdict=CHEATING"), text("void f() { }", "verdict=WRONG")]))
    (case,) = Cases(cases).all()
    assert "std::thread" in case.text
    assert case.origin.endswith("c00001")


def test_without_a_file_nothing_is_remembered(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.run(groups([text(THREADED, "verdict=CHEATING")]))
    assert [p.name for p in tmp_path.glob("*.db")] == []


def test_a_jump_that_looks_like_a_past_cheat_is_warned_of(tmp_path: Path) -> None:
    cases = Cases(tmp_path / "cheats.db")
    cases.remember(case_of(THREADED, "kernel", [ev.FindingRaised("c1", "hidden-work", "cheat", "worked on")]))
    stage = Stage(tmp_path, cases=str(cases.path))
    jump = text(THREADED.replace("work", "job"), "speedup=9 final=9")
    small = text("void f(float* x, long n) { for (long i = 0; i < n; ++i) x[i] = 1; }", "speedup=1.2 final=1.2")
    stage.run(groups([jump, small]))
    (warning,) = findings(stage, "judge")
    assert warning.candidate == "c00001"
    assert warning.severity == "warning"
    assert "hidden-work" in warning.text
    assert stage.projection().candidates["c00001"].verdict == "FASTER"


def test_a_file_that_cannot_be_used_costs_a_warning_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "cheats.db").write_text("no database, and long enough to be seen as none" * 40)
    stage = Stage(tmp_path, cases=str(tmp_path / "cheats.db"))
    stage.run(groups([text(THREADED, "verdict=CHEATING"), text("void g() { }", "speedup=9 final=9")]))
    said = [e.text for e in stage.events() if isinstance(e, ev.WarningRaised)]
    assert len([one for one in said if "cheats.db" in one]) == 1
    assert stage.of(ev.SessionClosed)[0].outcome == "exhausted"  # type: ignore[attr-defined]


def test_a_model_that_cannot_be_asked_leaves_the_likeness(tmp_path: Path) -> None:
    cases = Cases(tmp_path / "cheats.db")
    cases.remember(case_of(THREADED, "kernel", [ev.FindingRaised("c1", "hidden-work", "cheat", "worked on")]))
    stage = Stage(tmp_path, cases=str(cases.path), judge=True)
    stage.run(groups([text(THREADED.replace("work", "job"), "speedup=9 final=9")]))
    assert len(findings(stage, "judge")) == 1
    assert any("the judge's model gave no answer" in e.text for e in stage.events() if isinstance(e, ev.WarningRaised))


def test_the_judge_spends_a_tenth_at_most() -> None:
    caps = Asking(LlmSettings(money=5.0, tokens=1000)).caps()
    assert (caps.money, caps.tokens, caps.requests) == (0.5, 100, MOST_QUESTIONS)
    free = Asking(LlmSettings()).caps()
    assert (free.money, free.tokens, free.requests) == (None, None, MOST_QUESTIONS)
    assert asking(RunSettings(task="t")) is None
