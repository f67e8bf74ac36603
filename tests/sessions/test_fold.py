"""The fold: what counts, what is best, and that any order and any id is survived and replayed alike."""

from __future__ import annotations

import copy
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench_sessions import events as ev
from workbench_sessions import synthetic
from workbench_sessions.best import rank
from workbench_sessions.bounds import (
    BLOCK,
    DETAILS_WHOLE,
    LOG_LINES_KEPT,
    PAIR_BLOCK,
    PAIR_SERIES_KEPT,
    TELEMETRY_KEPT,
)
from workbench_sessions.events import Event, Stamped
from workbench_sessions.fold import fold, fold_all
from workbench_sessions.log import SessionReader, SessionWriter
from workbench_sessions.projection import Projection

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no failure."""

IDS = st.sampled_from(["c0", "c1", "c2", "c3", ""])
DEVICES = st.sampled_from(["cpu0", "cpu1"])
RATIOS = st.none() | st.floats(0.1, 10.0)
SECONDS = st.lists(st.floats(1e-6, 1.0), max_size=4)
STAGES = st.sampled_from(["proposed", "build", "verify", "time", "judge", "done"])
VERDICTS = st.sampled_from(["FASTER", "FASTER", "SLOWER", "SAME", "AMBIGUOUS", "WRONG", "FAILED", "CHEATING"])
TEXTS = st.text(max_size=8)
VALUES = st.dictionaries(TEXTS, st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | TEXTS, max_size=3)

PROMPTS = st.sampled_from(["p0", "p1", "p2"])
TOKENS = st.none() | st.integers(0, 99)
PRICES = st.none() | st.floats(0, 9)

EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        ev.CandidateProposed,
        candidate=IDS,
        kind=st.just("kernel"),
        source_sha256=TEXTS,
        origin=st.builds(ev.Origin, policy=TEXTS, prompt=st.none() | PROMPTS),
        island=st.integers(0, 3),
        generation=st.integers(0, 9),
        point=st.none() | VALUES,
    ),
    st.builds(ev.PromptSent, prompt=PROMPTS, model=TEXTS, text_sha256=TEXTS, answers=st.integers(1, 4)),
    st.builds(ev.ResponseStreamed, prompt=PROMPTS, text=TEXTS, restart=st.booleans()),
    st.builds(
        ev.ResponseReceived,
        prompt=PROMPTS,
        model=TEXTS,
        text_sha256=TEXTS,
        tokens_in=TOKENS,
        tokens_out=TOKENS,
        cost=PRICES,
        seconds=PRICES,
        finish=st.sampled_from(["stop", "length", "refusal", "failed"]),
        answer=st.integers(0, 3),
        problem=TEXTS,
    ),
    st.builds(ev.RetryScheduled, prompt=PROMPTS | st.just(""), wait_s=st.floats(0, 99), reason=TEXTS),
    st.builds(ev.OpinionReceived, candidate=IDS, model=TEXTS, tokens_in=st.integers(0, 99), requests=st.integers(0, 3)),
    st.builds(ev.CapReached, cap=st.just("tokens"), text=TEXTS),
    st.builds(ev.StageStarted, candidate=IDS, stage=STAGES, device=DEVICES),
    st.builds(ev.BuildFinished, candidate=IDS, ok=st.booleans(), seconds=st.floats(0, 9), log=TEXTS, feedback=TEXTS),
    st.builds(
        ev.VerifyFinished,
        candidate=IDS,
        ok=st.booleans(),
        seconds=st.floats(0, 9),
        checks=st.lists(st.builds(ev.Check, name=TEXTS, ok=st.booleans(), margin=RATIOS), max_size=2),
    ),
    st.builds(
        ev.PairsTimed,
        candidate=IDS,
        device=DEVICES,
        phase=st.sampled_from(["floor", "search", "final"]),
        reference_s=SECONDS,
        candidate_s=SECONDS,
    ),
    st.builds(
        ev.VerdictReached,
        candidate=IDS,
        verdict=VERDICTS,
        speedup=RATIOS,
        confirmed=st.booleans(),
        reward=RATIOS,
        evaluation=st.none() | st.integers(0, 99),
        sandbox_level=TEXTS,
    ),
    st.builds(
        ev.FindingRaised,
        candidate=IDS,
        code=TEXTS,
        severity=st.sampled_from(["info", "warning", "cheat"]),
        text=TEXTS,
        evidence=VALUES,
    ),
    st.builds(ev.HumanAccepted, candidate=IDS, reason=TEXTS),
    st.builds(ev.HumanRejected, candidate=IDS, reason=TEXTS),
    st.builds(ev.DecisionUndone, candidate=IDS),
    st.builds(ev.ReviewRequested, candidate=IDS),
    st.builds(ev.CandidatePinned, candidate=IDS, pinned=st.booleans()),
    st.builds(ev.ActivityChanged, device=DEVICES, activity=st.sampled_from(["idle", "build", "time"]), candidate=IDS),
    st.builds(ev.TelemetrySampled, device=DEVICES, utilisation=st.none() | st.floats(0, 1)),
    st.builds(ev.FloorMeasured, device=DEVICES, delta=st.floats(0, 1), medians=SECONDS),
    st.builds(ev.DeviceSeen, device=DEVICES, kind=TEXTS, name=TEXTS),
    st.builds(ev.EngineStarted, pid=st.integers(1, 9), resumed=st.booleans()),
    st.builds(ev.PhaseChanged, phase=st.sampled_from(["running", "paused"]), reason=TEXTS),
    st.builds(ev.SessionClosed, outcome=TEXTS),
    st.builds(ev.BudgetSpent, evaluations=st.integers(0, 99), seconds=st.floats(0, 9)),
    st.builds(ev.BudgetChanged, budget=st.builds(ev.Budget, evaluations=st.none() | st.integers(0, 9))),
    st.builds(ev.SteeringGiven, text=TEXTS, replace=st.booleans()),
    st.builds(ev.IslandMigrated, source=st.integers(0, 3), target=st.integers(0, 3), candidate=IDS),
    st.builds(ev.MemoryRevised, text=TEXTS),
    st.builds(ev.WarningRaised, text=TEXTS),
    st.builds(ev.CommandRefused, command=st.integers(0, 9), reason=TEXTS),
    st.builds(ev.UnknownEvent, kind=st.just("RanksSeen"), body=st.just('{"type":"RanksSeen","ranks":4}')),
)
LISTS = st.lists(EVENTS, max_size=60)


def folded(events: Iterable[Event], start: int = 1) -> Projection:
    return fold_all(Projection(), (Stamped(n, 1000.0 + n, float(n), e) for n, e in enumerate(events, start)))


def proposed(name: str, **fields: object) -> ev.CandidateProposed:
    origin = ev.Origin(policy="random")
    return ev.CandidateProposed(name, "kernel", "0" * 64, origin, 0, 0, **fields)  # type: ignore[arg-type]


def faster(name: str, speedup: float, confirmed: bool = False) -> ev.VerdictReached:
    return ev.VerdictReached(candidate=name, verdict="FASTER", speedup=speedup, confirmed=confirmed)


@UNHURRIED
@given(EVENTS)
def test_an_event_survives_its_encoding(event: Event) -> None:
    assert ev.decode(ev.kind_of(event), ev.encode(event)) == event


@UNHURRIED
@given(LISTS)
def test_counts_are_those_of_a_recount(events: list[Event]) -> None:
    p = folded(events)
    rows = list(p.candidates.values())
    stages = Counter(row.stage for row in rows)
    verdicts = Counter(row.verdict for row in rows)
    decisions = Counter(row.decision for row in rows)
    assert p.counts.proposed == len(rows)
    assert (p.counts.building, p.counts.verifying) == (stages["build"], stages["verify"])
    assert p.counts.timing == stages["time"] + stages["judge"]
    assert p.counts.done == stages["done"]
    assert p.counts.faster == verdicts["FASTER"]
    assert (p.counts.slower, p.counts.same, p.counts.ambiguous) == (
        verdicts["SLOWER"],
        verdicts["SAME"],
        verdicts["AMBIGUOUS"],
    )
    assert (p.counts.wrong, p.counts.failed, p.counts.cheating) == (
        verdicts["WRONG"],
        verdicts["FAILED"],
        verdicts["CHEATING"],
    )
    assert (p.counts.accepted, p.counts.rejected, p.counts.review) == (
        decisions["accepted"],
        decisions["rejected"],
        decisions["review"],
    )


@UNHURRIED
@given(LISTS)
def test_best_is_the_highest_of_all_eligible(events: list[Event]) -> None:
    p = Projection()
    for seq, event in enumerate(events, 1):
        fold(p, Stamped(seq, float(seq), float(seq), event))
        ranks = {name: r for name, row in p.candidates.items() if (r := rank(row)) is not None}
        assert p.best == (max(ranks, key=lambda name: ranks[name]) if ranks else None)
        if p.best is not None:
            assert p.best_curve[-1].candidate == p.best
            assert p.best_curve[-1].speedup == p.candidates[p.best].speedup
        elif p.best_curve:
            assert (p.best_curve[-1].candidate, p.best_curve[-1].speedup) == ("", 1.0)


@settings(UNHURRIED, max_examples=40)
@given(LISTS, st.data())
def test_a_seek_is_the_fold_of_the_events_before_it_whatever_the_way(events: list[Event], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.wb"
        with SessionWriter.create(path, "{}", checkpoint_every=7) as writer:
            stamped: list[Stamped] = []
            while len(stamped) < len(events):
                size = data.draw(st.integers(1, 20), label="batch")
                stamped += writer.append(events[len(stamped) : len(stamped) + size])
            assert writer.projection == fold_all(Projection(), stamped)
        with SessionReader(path) as reader, SessionWriter.open(path, checkpoint_every=7) as again:
            assert again.projection == fold_all(Projection(), stamped)
            for seq in data.draw(st.lists(st.integers(0, len(events)), max_size=6), label="seeks"):
                want, got = fold_all(Projection(), stamped[:seq]), reader.project_at(seq)
                assert got == want
                assert list(got.pairs) == list(want.pairs) and list(got.candidates) == list(want.candidates)


@settings(UNHURRIED, max_examples=40)
@given(LISTS, LISTS)
def test_a_resumed_writer_folds_on_as_if_it_had_never_stopped(before: list[Event], after: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.wb"
        with SessionWriter.create(path, "{}", checkpoint_every=7) as writer:
            stamped = writer.append(before)
        with SessionWriter.open(path, checkpoint_every=7) as writer:
            stamped = stamped + writer.append(after)
            assert writer.projection == fold_all(Projection(), stamped)
        with SessionReader(path) as reader:
            assert reader.project_at(len(stamped)) == fold_all(Projection(), stamped)


@UNHURRIED
@given(LISTS)
def test_folding_on_leaves_earlier_values_alone(events: list[Event]) -> None:
    p = folded(events)
    shallow = msgspec.structs.replace(
        p, **{f: copy.copy(getattr(p, f)) for f in p.__struct_fields__ if isinstance(getattr(p, f), list | dict)}
    )
    deep = copy.deepcopy(shallow)
    for seq, event in enumerate(events, len(events) + 1):
        fold(p, Stamped(seq, 2000.0, 0.0, event))
    for field in ("candidates", "details", "pairs", "current_pairs", "devices", "policy_steps", "marks", "log"):
        assert getattr(shallow, field) == getattr(deep, field)


def test_a_confirmed_number_goes_before_a_higher_unconfirmed_one() -> None:
    start = [proposed("c0"), proposed("c1"), faster("c0", 1.2, confirmed=True), faster("c1", 3.0)]
    assert folded(start).best == "c0"
    assert folded([*start, faster("c1", 2.5, confirmed=True)]).best == "c1"


def test_a_confirmation_replaces_the_numbers_and_keeps_reward_and_evaluation() -> None:
    first = ev.VerdictReached("c0", "FASTER", speedup=2.0, lower=1.9, threads_speedup=2.2, reward=0.69, evaluation=7)
    p = folded([proposed("c0"), first, faster("c0", 1.8, confirmed=True)])
    row = p.candidates["c0"]
    assert (row.speedup, row.lower, row.threads_speedup, row.confirmed) == (1.8, None, None, True)
    assert (row.reward, row.evaluation) == (0.69, 7)
    assert [point.speedup for point in p.best_curve] == [2.0, 1.8]


def test_rejecting_the_best_brings_back_the_next_and_undoing_restores_it() -> None:
    start = [proposed("c0"), proposed("c1"), faster("c0", 1.5), faster("c1", 2.0), ev.HumanRejected("c1", "ugly")]
    assert folded(start).best == "c0"
    assert folded([*start, ev.DecisionUndone("c1")]).best == "c1"
    alone = folded([proposed("c1"), faster("c1", 2.0), ev.HumanRejected("c1")])
    assert alone.best is None and alone.best_curve[-1].speedup == 1.0


def test_a_best_that_turns_out_cheating_is_no_longer_best() -> None:
    p = folded([proposed("c0"), faster("c0", 9.0), ev.VerdictReached("c0", "CHEATING")])
    assert p.best is None and p.counts.cheating == 1 and p.counts.faster == 0


def test_a_review_request_does_not_override_a_decision() -> None:
    assert folded([proposed("c0"), ev.HumanAccepted("c0"), ev.ReviewRequested("c0")]).counts.review == 0


def test_floor_pairs_belong_to_the_device_alone() -> None:
    batch = ev.PairsTimed("", "cpu0", "floor", [1.0], [1.1])
    p = folded([batch, batch])
    assert p.pairs == {} and p.current_pairs["cpu0"].reference_s == [1.0, 1.0]


def test_pairs_add_up_in_a_run_and_start_afresh_in_the_next() -> None:
    batch = ev.PairsTimed("c0", "cpu0", "search", [1.0, 2.0], [0.5, 1.0])
    start = [proposed("c0"), ev.StageStarted("c0", "time", "cpu0"), batch, batch]
    assert folded(start).candidates["c0"].pairs == 4
    again = folded([*start, ev.StageStarted("c0", "time", "cpu0"), batch])
    assert again.pairs["c0"].reference_s == [1.0, 2.0] == again.current_pairs["cpu0"].reference_s


def test_a_restart_ends_lanes_where_the_log_fell_silent_and_puts_work_back() -> None:
    events = [proposed("c0"), ev.StageStarted("c0", "build", "cpu0"), ev.ActivityChanged("cpu0", "build", "c0")]
    p = fold_all(Projection(), (Stamped(n, 10.0 + n, 0.0, e) for n, e in enumerate(events, 1)))
    fold(p, Stamped(4, 500.0, 0.0, ev.EngineStarted(pid=2, resumed=True)))
    assert p.lanes["cpu0"][-1].end_s == 13.0
    assert p.candidates["c0"].stage == "proposed" and p.counts.building == 0
    assert p.devices["cpu0"].activity == "idle"


def test_the_end_leaves_nothing_in_flight() -> None:
    p = folded([proposed("c0"), ev.StageStarted("c0", "verify", "cpu0"), ev.SessionClosed("stopped")])
    assert p.counts.verifying == 0 and p.candidates["c0"].stage == "proposed" and p.header.closed


def test_an_unknown_kind_is_counted_and_logged() -> None:
    p = folded([ev.UnknownEvent(kind="RanksSeen", body="{}")])
    assert p.unknown_events == 1 and "RanksSeen" in p.log[-1].text


def test_what_json_cannot_say_is_folded_alike_by_writer_and_reader(tmp_path: Path) -> None:
    path = tmp_path / "s.wb"
    with SessionWriter.create(path, "{}") as writer:
        writer.append([proposed("c0"), ev.PairsTimed("c0", "cpu0", "search", [float("nan")], [1.0])])
        assert writer.projection.unknown_events == 1
        with SessionReader(path) as reader:
            assert reader.project_at(2) == writer.projection


def test_memory_stays_bounded() -> None:
    count = TELEMETRY_KEPT + 5 * BLOCK
    p = folded([*(ev.TelemetrySampled("cpu0", load=float(n)) for n in range(count)), ev.WarningRaised("x")])
    assert len(p.telemetry["cpu0"]) < TELEMETRY_KEPT + BLOCK and p.telemetry["cpu0"][-1].load == count - 1
    many = DETAILS_WHOLE + 4 * BLOCK
    names = [f"c{n}" for n in range(many)]
    events: list[Event] = []
    for name in names:
        events += [
            proposed(name, point={"tile": 4}),
            ev.BuildFinished(name, True, 0.1, log="long"),
            ev.PairsTimed(name, "cpu0", "search", [1.0], [1.0]),
            faster(name, 1.1),
        ]
    p = folded(events)
    assert len(p.pairs) < PAIR_SERIES_KEPT + PAIR_BLOCK and names[-1] in p.pairs
    assert len(p.log) < LOG_LINES_KEPT + BLOCK
    assert p.details[names[0]].build_log == "" and p.details[names[0]].point == {"tile": 4}
    assert all(p.details[name].build_log == "long" for name in names[-DETAILS_WHOLE:])


def test_the_synthetic_session_is_repeatable_and_shows_everything() -> None:
    first, second = list(synthetic.events(200, seed=3)), list(synthetic.events(200, seed=3))
    assert first == second != list(synthetic.events(200, seed=4))
    p = folded(first)
    c = p.counts
    assert c.done == c.proposed == 200 and p.best is not None and p.candidates[p.best].confirmed
    assert min(c.faster, c.slower, c.wrong, c.failed, c.cheating, c.accepted, c.rejected) > 0
    assert len({row.island for row in p.candidates.values()}) == synthetic.ISLANDS
    assert p.policy_steps and p.migrations and p.telemetry and p.lanes and p.unknown_events == 0
