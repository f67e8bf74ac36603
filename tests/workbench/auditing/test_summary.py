from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from workbench.auditing.rows import STATES, VALID, Finding, Outcome
from workbench.auditing.summary import Group, numbers, summarise
from workbench.auditing.tables import count_cells, group_cells, headline, notes, row_cells


def outcome(
    task: int,
    state: str,
    claimed: float | None = 2.0,
    speedup: float | None = None,
    level: str = "1",
    spread: float = 0.0,
) -> Outcome:
    d = [math.log(speedup) + spread * (-1) ** i for i in range(16)] if speedup else []
    return Outcome(
        key=f"{level}/{task}",
        number=task,
        level=level,
        task=str(task),
        state=state,
        claims={"score": claimed},
        speedup=speedup,
        lower=speedup and speedup * 0.9,
        upper=speedup and speedup * 1.1,
        delta=0.01,
        d=d,
    )


def whole(outcomes: list[Outcome], **more: object) -> Group:
    return summarise(outcomes, "score", resamples=200, p_resamples=2000, **more)[-1]  # type: ignore[arg-type]


MIXED = [
    outcome(1, "FASTER", 4.0, 2.0),
    outcome(2, "SLOWER", None, 0.5),
    outcome(3, "WRONG", 8.0),
    outcome(4, "CHEATING", 100.0, 50.0),
    outcome(5, "NO CODE", 3.0),
    outcome(6, "TASK REFUSED", 1.5),
    outcome(7, "UNCHANGED", 9.0, 1.0),
]


def test_what_is_no_usable_kernel_counts_as_one_and_is_said() -> None:
    group = whole(MIXED)
    assert group.refereed is not None and group.claimed is not None
    # 2, 0.5 and five times 1: a cheat's measured 50× does not enter.
    assert group.refereed.mean == pytest.approx(7.5 / 7)
    assert group.refereed.geomean == pytest.approx(1.0)
    assert (group.refereed.max, group.refereed.fast_1, group.refereed.fast_1_2) == (2.0, 1 / 7, 1 / 7)
    assert group.claimed.mean == pytest.approx((4 + 1 + 8 + 100 + 3 + 1.5 + 9) / 7)
    assert (group.valid, group.unusable, group.no_code, group.not_judged, group.unclaimed) == (3, 2, 1, 1, 1)
    said = " ".join(notes([group], "score", 7, {}, "a device", "a cage"))
    assert "refereed 1.0 over all rows: 4 of 7 (no code: 1; no usable kernel" in said
    assert "claimed 1.0: 1 of 7" in said and "absent" not in said and "Incomplete" not in said


def test_the_valid_rows_are_also_summed_up_alone_on_both_sides() -> None:
    group = whole(MIXED)
    assert group.valid_claimed is not None and group.valid_refereed is not None
    assert (group.valid_claimed.n, group.valid_refereed.n) == (3, 3)
    assert group.valid_claimed.geomean == pytest.approx((4 * 1 * 9) ** (1 / 3))
    assert group.valid_refereed.mean == pytest.approx(3.5 / 3)


def test_what_this_machine_cannot_judge_is_also_left_out_on_both_sides() -> None:
    group = whole(MIXED)
    assert group.judged_claimed is not None and group.judged_refereed is not None
    assert (group.judged_claimed.n, group.judged_refereed.n) == (6, 6)
    assert group.judged_claimed.mean == pytest.approx((4 + 1 + 8 + 100 + 3 + 9) / 6)
    assert [cells[1] for cells in group_cells(group)].count("refereed, judged rows") == 1
    assert "1 could not be judged here" in headline([group])
    assert "could not" not in headline([whole(MIXED[:5])])


def test_absent_tasks_are_counted_as_one_at_their_level_and_over_all() -> None:
    groups = summarise([outcome(1, "FASTER", 4.0, 4.0)], "score", {"1": 4, "2": 2}, resamples=100, p_resamples=2000)
    assert [(g.name, g.rows, g.absent) for g in groups] == [("1", 4, 3), ("2", 2, 2), ("all", 6, 5)]
    assert groups[0].refereed is not None and groups[0].refereed.mean == pytest.approx(7 / 4)
    assert groups[1].claimed is not None and groups[1].claimed.mean == 1.0


def test_a_row_that_cannot_be_read_is_one_of_the_absent() -> None:
    broken = outcome(9, "BAD ROW", None, level="?")
    group = whole([outcome(1, "FASTER", 4.0, 4.0), broken], expected={"1": 2})
    assert (group.rows, group.absent, group.no_code) == (2, 0, 1)


def test_several_candidates_of_a_task_hide_no_absent_one() -> None:
    twice = [outcome(1, "FASTER", 4.0, 4.0), replace(outcome(1, "WRONG"), key="1/1#2", sample="2")]
    assert whole(twice, expected={"1": 2}).absent == 1


def test_holm_asks_more_of_a_row_among_many() -> None:
    clear = [outcome(n, "FASTER", 2.0, 1.5) for n in range(5)]
    assert whole(clear).holm_faster == 5
    # Alone at p just under 5 %, it may be claimed; among forty rows that found nothing it may not.
    doubtful = replace(outcome(1, "FASTER", 2.0, 1.2), d=[0.2] * 9 + [-0.2] * 6)
    alone, among = whole([doubtful]), whole([doubtful, *(outcome(n, "NO CODE") for n in range(2, 42))])
    assert among.holm_faster == 0
    assert alone.faster == among.faster == 1


def test_no_row_at_all_has_no_numbers() -> None:
    group = whole([])
    assert (group.rows, group.refereed, group.valid_refereed) == (0, None, None)
    assert numbers([]) is None and group_cells(group) == []
    assert headline([group]) == "no row is judged"


def test_without_any_claim_only_the_refereed_side_is_shown() -> None:
    group = whole([outcome(1, "FASTER", None, 2.0), outcome(2, "NO CODE", None)])
    assert [cells[1] for cells in group_cells(group)] == ["refereed, all rows", "refereed, valid rows"]
    assert "nothing claimed" in headline([group])


def test_quartiles_of_four_values() -> None:
    found = numbers([1.0, 2.0, 3.0, 4.0])
    assert found is not None and (found.p25, found.median, found.p75, found.max) == (1.75, 2.5, 3.25, 4.0)
    assert (found.fast_1, found.fast_1_2) == (0.75, 0.75)


states = st.sampled_from(STATES)
speedups = st.floats(0.01, 100)
outcomes = st.lists(st.tuples(states, st.none() | speedups, speedups), min_size=1, max_size=12).map(
    lambda rows: [outcome(n, s, c, v if s in VALID else None) for n, (s, c, v) in enumerate(rows)]
)


@given(outcomes)
def test_every_row_is_in_exactly_one_class_and_the_interval_holds_the_mean(rows: list[Outcome]) -> None:
    group = summarise(rows, "score", resamples=50, p_resamples=200)[-1]
    assert group.valid + group.unusable + group.no_code + group.not_judged == group.rows == len(rows)
    assert sum(group.verdicts.values()) == len(rows)
    assert group.refereed is not None and group.refereed.low is not None and group.refereed.high is not None
    assert group.refereed.low <= group.refereed.high
    assert group.refereed.n == len(rows) and group.holm_faster <= group.faster
    assert len(count_cells(group)) == 9


def test_a_measured_number_that_does_not_count_stands_in_brackets() -> None:
    cells = row_cells(outcome(1, "CHEATING", 449.0, 50.0), "score")
    assert cells[1:4] == ["449×", "CHEATING", "(50.0×)"]
    assert row_cells(outcome(1, "WRONG", None), "score")[1:5] == ["—", "WRONG", "—", ""]


def test_fallbacks_and_what_is_left_to_do_are_said() -> None:
    idle = replace(outcome(1, "SAME", 3.0, 1.0), findings=[Finding("device-code-idle", "label", "…")])
    group = whole([idle])
    said = " ".join(notes([group], "score", 5, {"set": "batch_size=4"}, "a device", "a cage"))
    assert group.fallbacks == 1
    assert "1 of 5 rows are judged so far" in said and "fallback" in said and "batch_size=4" in said
