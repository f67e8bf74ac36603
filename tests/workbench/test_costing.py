"""Where the time of a verdict goes, folded from made-up facts."""

from __future__ import annotations

import pytest

from workbench.benching.costing import Heard, cost, median_cost, rows
from workbench_engine.referee.stopwatch import Stopwatch
from workbench_sessions.events import BuildFinished, StageStarted, VerdictReached


def facts(pairs_s: float = 0.5, verdict: str = "FASTER") -> list[Heard]:
    end = VerdictReached("c", verdict, 1.5, pairs=16, candidate_s=1e-3, spent_s={"checks": 0.3, "pairs": pairs_s})  # type: ignore[arg-type]
    return [
        Heard(0.01, StageStarted("c", "build", "cpu0")),
        Heard(0.40, BuildFinished("c", True, 0.38)),
        Heard(0.45, StageStarted("c", "verify", "cpu1")),
        Heard(1.5, end),
    ]


def test_the_parts_add_up_to_the_wall() -> None:
    found = cost("search", facts())
    assert found.wall_s == 1.5
    assert sum(found.parts_s.values()) == pytest.approx(1.5)
    assert found.parts_s["build"] == 0.40
    assert found.parts_s["wait"] == pytest.approx(0.05)
    assert found.parts_s["rest"] == pytest.approx(0.25)


def test_a_module_has_no_build_and_a_failure_no_parts() -> None:
    bare = [Heard(0.2, StageStarted("c", "verify", "cpu1")), Heard(0.9, VerdictReached("c", "FAILED"))]
    found = cost("final", bare)
    assert found.parts_s["build"] == 0.0
    assert found.parts_s["rest"] == pytest.approx(0.7)
    with pytest.raises(ValueError, match="no verdict"):
        cost("final", bare[:1])


def test_medians_and_their_table() -> None:
    middle = median_cost([cost("search", facts(x)) for x in (0.1, 0.5, 0.2)])
    assert middle.parts_s["pairs"] == pytest.approx(0.2)
    lines = rows([middle])
    assert [line[0] for line in lines].index("checks") < [line[0] for line in lines].index("pairs")
    assert lines[-3:] == [["from submission to verdict", "1.500 s"], ["pairs", "16"], ["verdict", "FASTER"]]


def test_laps_of_one_name_add_up() -> None:
    ticks = iter([0.0, 1.0, 3.0, 3.5])
    watch = Stopwatch(lambda: next(ticks))
    watch.lap("a")
    watch.lap("b")
    watch.lap("a")
    assert watch.laps_s == {"a": 1.5, "b": 2.0}
