"""The winner's curse: who is measured again, and what that changes."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.conductor.standin import Stage, groups

from workbench_engine.conducting.confirming import confirmed_best, next_to_confirm, promising_above
from workbench_sessions import events as ev
from workbench_sessions.events import Origin, Verdict
from workbench_sessions.projection import Candidate


def row(name: str, speedup: float, verdict: Verdict = "FASTER", confirmed: bool = False, seq: int = 1) -> Candidate:
    origin = Origin(policy="x")
    made = Candidate(name, "kernel", "", origin, 0, 0, [], seq, 0.0)
    made = Candidate(
        **{f: getattr(made, f) for f in made.__struct_fields__}
        | {"verdict": verdict, "speedup": speedup, "confirmed": confirmed, "stage": "done"}
    )
    return made


def test_the_highest_claim_goes_first_and_lesser_ones_are_settled() -> None:
    rows = [row("a", 1.5), row("b", 2.0), row("c", 9.0, "WRONG"), row("d", 1.0, "SAME")]
    assert next_to_confirm(rows) == "b"
    assert next_to_confirm([*rows, row("e", 1.9, confirmed=True)]) == "b"
    assert next_to_confirm([*rows, row("e", 2.0, confirmed=True)]) is None
    assert next_to_confirm(rows, skip=["b"]) == "a"
    assert next_to_confirm([]) is None


def test_of_equals_the_earlier() -> None:
    assert next_to_confirm([row("late", 2.0, seq=9), row("early", 2.0, seq=3)]) == "early"


def test_quick_looks() -> None:
    assert promising_above(None, 0.97) == 1.0
    assert promising_above(1.01, 0.97) == 1.0
    assert promising_above(2.0, 0.5) == 1.0
    assert promising_above(4.0, 0.5) == 2.0


@given(st.lists(st.tuples(st.floats(0.5, 4.0), st.floats(0.5, 1.1)), max_size=12))
def test_confirming_ends_with_nobody_above_the_confirmed_best(claims: list[tuple[float, float]]) -> None:
    rows = {f"c{i}": row(f"c{i}", s, "FASTER" if s > 1 else "SLOWER", seq=i) for i, (s, _) in enumerate(claims)}
    rounds = 0
    while (name := next_to_confirm(rows.values())) is not None:
        index = int(name[1:])
        found = claims[index][0] * claims[index][1]
        rows[name] = row(name, found, "FASTER" if found > 1 else "SAME", confirmed=True, seq=index)
        rounds += 1
        assert rounds <= len(claims)
    best = confirmed_best(rows.values())
    assert all(r.confirmed or r.verdict != "FASTER" or (r.speedup or 0) <= best for r in rows.values())


def test_a_lucky_timing_is_found_out(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.run(groups(["lucky speedup=3.0 final=1.2", "honest speedup=2.0 final=1.9", "third speedup=1.5"]))
    p = stage.projection()
    assert p.best == "c00002" and p.candidates["c00002"].speedup == 1.9 and p.candidates["c00002"].confirmed
    assert p.candidates["c00001"].speedup == 1.2 and p.candidates["c00001"].confirmed
    assert not p.candidates["c00003"].confirmed
    assert p.evaluations == 3
    assert [c for c, profile in stage.executor.jobs if profile == "final"][-1] == "c00002"


def test_a_confirmation_that_finds_it_wrong(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.run(groups(["a speedup=3.0 final=WRONG"]))
    p = stage.projection()
    assert p.best is None and p.candidates["c00001"].verdict == "WRONG" and p.candidates["c00001"].confirmed


def test_a_lost_confirmation_is_tried_again_and_then_left(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.run(groups(["a speedup=3.0 final=broken"]))
    p = stage.projection()
    assert [profile for _, profile in stage.executor.jobs] == ["search", "final", "final"]
    assert p.best == "c00001" and not p.candidates["c00001"].confirmed and p.candidates["c00001"].stage == "done"
    assert len(stage.of(ev.VerdictReached)) == 1
