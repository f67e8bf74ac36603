"""What a proposal is conditioned on: exemplars by the chosen rule, failures by stage, what people said."""

from __future__ import annotations

import random

import pytest

from workbench_engine.conducting.archive import Archive, failed_stage
from workbench_engine.conducting.remarks import remarks
from workbench_engine.rl.contrastive import ContrastiveSettings, draw_exemplars, draw_random
from workbench_engine.settings import RunSettings
from workbench_sessions.events import Origin
from workbench_sessions.projection import Candidate, Details


def row(name: str, **fields: object) -> Candidate:
    base = {"kind": "kernel", "source_sha256": name, "origin": Origin("llm"), "island": 0, "generation": 0}
    given = {**base, "parents": [], "proposed_seq": 1, "proposed_at_s": 0.0, **fields}
    return Candidate(id=name, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "details", "stage"),
    [
        ({"verdict": "FASTER"}, Details(), ""),
        ({"verdict": "WRONG"}, Details(build_s=1.0, verify_s=1.0), "verify"),
        ({"verdict": "CHEATING"}, Details(build_s=1.0, verify_s=1.0), "judge"),
        ({"verdict": "FAILED", "reason": "no ;"}, Details(build_s=1.0, feedback="no ;"), "build"),
        ({"verdict": "FAILED", "reason": "the worker died"}, Details(build_s=1.0), ""),
        ({"verdict": "FAILED", "reason": "NameError", "kind": "module"}, Details(), "build"),
        ({"verdict": "FAILED", "reason": "late"}, Details(build_s=1.0, verify_s=1.0), "time"),
    ],
)
def test_the_stage_at_which_it_failed(fields: dict[str, object], details: Details, stage: str) -> None:
    assert failed_stage(row("c1", **fields), details) == stage


def filled(contrast: str, exemplars: int = 2) -> Archive:
    archive = Archive("t", RunSettings(task="t", contrast=contrast, exemplars=exemplars))  # type: ignore[arg-type]
    for i, speedup in enumerate([0.5, 0.8, 1.1, 1.5, 2.0, 2.7]):
        archive.take(row(f"c{i}", verdict="SAME", speedup=speedup, island=i % 2), Details(), f"text {i}")
    archive.take(row("bad", verdict="WRONG", reason="wrong"), Details(), "text")
    archive.take(row("worse", verdict="FAILED", reason="dead"), Details(), "text")
    return archive


@pytest.mark.parametrize("contrast", ["bucket", "island", "random"])
def test_exemplars_are_distinct_correct_and_slow_to_fast(contrast: str) -> None:
    archive = filled(contrast, exemplars=3)
    for seed in range(30):
        context = archive.context(seed, "", random.Random(seed))
        speedups = [s.speedup or 0.0 for s in context.exemplars]
        assert len(set(speedups)) == 3 and speedups == sorted(speedups)
        if contrast == "island":
            assert {s.island for s in context.exemplars} == {context.island}
        assert [f.candidate for f in context.failures] == ["worse", "bad"]


def test_random_draws_the_slow_as_often_as_the_fast_and_buckets_do_not() -> None:
    counts = {}
    for contrast in ("bucket", "random"):
        archive = filled(contrast, exemplars=1)
        drawn = [archive.context(i, "", random.Random(i)).exemplars[0].candidate for i in range(600)]
        counts[contrast] = drawn.count("c5") / max(1, drawn.count("c0"))
    assert 0.7 < counts["random"] < 1.4
    assert counts["bucket"] > 3.0


def test_accepted_ones_come_first_inside_their_bucket_only() -> None:
    archive = filled("bucket")
    archive.take(row("twin", verdict="SAME", speedup=2.7), Details(), "twin")
    scored = archive._population.scored()
    settings = ContrastiveSettings(exemplars=1)
    liked = [draw_exemplars(scored, settings, random.Random(i), {"twin"})[0].candidate for i in range(200)]
    assert "c5" not in liked and "twin" in liked and "c4" in liked


def test_random_never_draws_more_than_there_are() -> None:
    assert draw_random((), 2, random.Random(0)) == ()


def test_what_people_said_newest_first() -> None:
    rows = [
        row("c1", decision="rejected", decision_reason="ugly", changed_seq=5),
        row("c2", decision="accepted", decision_reason="", changed_seq=9),
        row("c3", decision="review", changed_seq=11),
        row("c4"),
    ]
    assert [(r.candidate, r.accepted, r.reason) for r in remarks(rows)] == [("c2", True, ""), ("c1", False, "ugly")]
