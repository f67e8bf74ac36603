from __future__ import annotations

from pathlib import Path

import pytest

from workbench_engine.referee.adversary import cases as module
from workbench_engine.referee.adversary.cases import Case, Cases, CasesUnusable, case_of
from workbench_sessions.events import FindingRaised

CHEAT = FindingRaised("c1", "stale-pointer", "cheat", "answers by address")
LABEL = FindingRaised("c1", "advice", "label", "uses streams")


def case(text: str, at_s: float = 1.0) -> Case:
    return case_of(text, "module", [CHEAT, LABEL], "session s, c1", at_s)


def test_what_was_found_is_kept(tmp_path: Path) -> None:
    cases = Cases(tmp_path / "deep" / "cheats.db")
    assert cases.all() == []
    assert not cases.path.exists()
    assert cases.remember(case("x = 1"))
    (kept,) = cases.all()
    assert (kept.text, kept.codes, kept.said, kept.origin) == (
        "x = 1",
        ("stale-pointer",),
        "answers by address",
        "session s, c1",
    )


def test_the_same_code_is_one_case(tmp_path: Path) -> None:
    cases = Cases(tmp_path / "cheats.db")
    assert cases.remember(case("x = 1"))
    assert not cases.remember(case("x  =  1  # again"))
    assert len(cases.all()) == 1


def test_several_may_write(tmp_path: Path) -> None:
    first, second = Cases(tmp_path / "cheats.db"), Cases(tmp_path / "cheats.db")
    first.remember(case("x = 1", 1.0))
    second.remember(case("y = 2", 2.0))
    assert [c.text for c in first.all()] == ["x = 1", "y = 2"]


def test_forgetting(tmp_path: Path) -> None:
    cases = Cases(tmp_path / "cheats.db")
    cases.remember(case("x = 1"))
    cases.remember(case("y = 2"))
    name = cases.all()[0].name
    assert cases.forget("nothing") == 0
    assert cases.forget(name) == 1
    assert name not in [c.name for c in cases.all()]
    assert len(cases.all()) == 1


def test_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CASES", 3)
    cases = Cases(tmp_path / "cheats.db")
    for number in range(5):
        cases.remember(case(f"x = {number}", float(number + 1)))
    assert [c.text for c in cases.all()] == ["x = 2", "x = 3", "x = 4"]


def test_a_broken_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "cheats.db"
    path.write_text("no database at all, but long enough to be taken for one" * 20)
    with pytest.raises(CasesUnusable, match=r"cheats\.db: .*; free the disk, or move the file away"):
        Cases(path).all()
    with pytest.raises(CasesUnusable):
        Cases(path).remember(case("x = 1"))


def test_without_a_cheat_among_them_warnings_are_the_reason() -> None:
    warning = FindingRaised("c1", "bimodal", "warning", "two groups")
    assert case_of("x", "module", [LABEL, warning]).codes == ("bimodal",)
    assert case_of("x", "module", [LABEL, warning, CHEAT]).codes == ("stale-pointer",)
