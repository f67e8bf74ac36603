from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.benching import store
from workbench.benching.against_itself import twin
from workbench.benching.comparing import best_at, cells, compare, median_curve, sign_test
from workbench.benching.plotting import plot_policies
from workbench.benching.runs import Finished, Point
from workbench.benching.tables import TASK_COLUMNS, markdown_table, task_cells, text_table
from workbench.errors import UsageProblem


def finished(task: str, policy: str, seed: int, *curve: tuple[int, float]) -> Finished:
    best = max((speedup for _, speedup in curve), default=None)
    return Finished(
        task=task,
        policy=policy,
        seed=seed,
        outcome="budget",
        evaluations=64,
        seconds=60.0,
        verdicts={"FASTER": len(curve), "WRONG": 2, "SAME": 0},
        reference_s=4.66e-3,
        best=best,
        lower=best,
        upper=best,
        confirmed=False,
        first_faster_s=None if best is None else 3.0,
        delta=0.01,
        sandbox="bwrap",
        host="made up",
        curve=[Point(n, speedup) for n, speedup in curve],
    )


def test_nothing_faster_counts_as_the_reference_itself() -> None:
    curve = [Point(3, 1.2), Point(9, 1.5)]
    assert [best_at(curve, n) for n in (1, 3, 8, 9, 64)] == [1.0, 1.2, 1.2, 1.5, 1.5]
    assert best_at([], 64) == 1.0


def test_policies_are_compared_task_by_task_over_medians() -> None:
    runs = [finished("a", "new", s, (5, x)) for s, x in enumerate((1.0, 2.0, 8.0))]
    runs += [finished("a", "old", s, (5, 1.0)) for s in range(3)]
    runs += [finished("b", "new", 0, (5, 1.5)), finished("b", "old", 0, (5, 3.0))]
    runs += [finished("c", "new", 0, (70, 9.0)), finished("c", "old", 0)]
    found = compare(cells(runs, 64), "new", "old")
    # The late find on task c is beyond the budget.
    assert (found.wins, found.losses, found.ties) == (1, 1, 1)
    assert found.geomean_ratio == pytest.approx((2.0 * 0.5 * 1.0) ** (1 / 3))
    with pytest.raises(ValueError, match="no task"):
        compare(cells(runs, 64), "new", "absent")


@pytest.mark.parametrize(("wins", "losses", "p"), [(0, 0, 1.0), (5, 0, 0.0625), (9, 1, 0.021484375), (3, 3, 1.0)])
def test_sign_test_against_hand_computed_values(wins: int, losses: int, p: float) -> None:
    assert sign_test(wins, losses) == pytest.approx(p)


@given(st.integers(0, 40), st.integers(0, 40))
def test_sign_test_is_symmetric_and_a_probability(wins: int, losses: int) -> None:
    assert sign_test(wins, losses) == sign_test(losses, wins)
    assert 0.0 < sign_test(wins, losses) <= 1.0


def test_the_median_curve_rises_to_the_medians() -> None:
    runs = [finished("a", "p", s, (2, x)) for s, x in enumerate((1.0, 2.0, 4.0))] + [finished("b", "p", 0, (3, 8.0))]
    curve = median_curve(runs, 4)
    assert curve == pytest.approx([1.0, math.sqrt(2.0), 4.0, 4.0])


def test_results_are_kept_and_only_fit_their_own_budget(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "results.json"
    assert store.load(path, 64).runs == []
    results = store.Results(64, [finished("a", "p", 0, (2, 1.5))])
    store.save(path, results)
    assert store.load(path, 64) == results
    with pytest.raises(UsageProblem, match="64 evaluations, not 32"):
        store.load(path, 32)
    path.write_bytes(msgspec.json.encode({"x": 1}))
    with pytest.raises(UsageProblem, match="choose another file"):
        store.load(path, 64)


def test_tables_keep_their_columns() -> None:
    rows = [task_cells(finished("a|b", "p", 0, (2, 1.5))), task_cells(finished("c", "p", 0))]
    assert rows[0][3] == "1.50× [1.50 1.50]"
    assert rows[1][3] == rows[1][6] == "—"
    lines = text_table(TASK_COLUMNS, rows).splitlines()
    assert len({line.index(cell[2]) for line, cell in zip(lines[1:], rows, strict=True)}) == 1
    assert "a\\|b" in markdown_table(TASK_COLUMNS, rows)


def test_the_plot_is_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is only in the dev and bench extras")
    out = tmp_path / "curves.svg"
    plot_policies([finished("a", "new", 0, (2, 1.5)), finished("a", "old", 0)], 8, out)
    assert "<svg" in out.read_text()
    with pytest.raises(UsageProblem, match="--plot"):
        plot_policies([finished("a", "new", 0)], 8, tmp_path / "curves.nonsense")


def test_a_twin_is_the_reference_under_the_candidates_name() -> None:
    names: dict[str, object] = {}
    exec(twin("class Model:\n    pass\n"), names)
    assert names["ModelNew"] is names["Model"]
