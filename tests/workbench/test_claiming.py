"""What `bench tasks` may claim of its runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.benching.claiming import Claim, claim_of, claims, sentences
from workbench_sessions.projection import PairSeries


def series(phase: str, ratio: float, noise: float = 0.01, pairs: int = 40, threads: int = 1) -> PairSeries:
    rng = np.random.default_rng(3)
    candidate = np.exp(rng.normal(0.0, noise, pairs))
    reference = ratio * np.exp(rng.normal(0.0, noise, pairs))
    return PairSeries("c", "cpu0", phase, 1, threads, reference.tolist(), candidate.tolist())


def test_only_the_confirming_measurement_claims() -> None:
    found = claim_of([series("search", 3.0), series("final", 1.5), series("threads", 9.0, threads=2)], 0.01, 50)
    assert math.exp(float(np.median(found.d))) == pytest.approx(1.5, rel=0.02)
    assert found.p < 1e-3
    assert 0.0 < found.luck < 0.1
    unconfirmed = claim_of([series("search", 3.0)], 0.01, 50)
    assert unconfirmed.p == 1.0 and unconfirmed.d == [] and unconfirmed.luck > 0.0
    assert claim_of([], 0.01, 0) == Claim()


def test_luck_grows_with_the_crowd_and_a_floor_takes_claims_away() -> None:
    pair = [series("search", 1.2), series("final", 1.02)]
    assert claim_of(pair, 0.0, 1).luck == 0.0
    assert claim_of(pair, 0.0, 100).luck > claim_of(pair, 0.0, 10).luck
    assert claim_of(pair, 0.0, 10).p < 0.01
    assert claim_of(pair, 0.05, 10).p > 0.9


def test_claims_over_tasks_count_what_found_nothing() -> None:
    good = claim_of([series("final", 2.0)], 0.01, 10)
    found = claims({"a": good, "b": Claim()})
    assert (found.faster.k, found.faster.m) == (1, 2)
    assert found.geomean == pytest.approx(math.sqrt(2.0), rel=0.02)
    said = sentences({"a": good, "b": Claim()})
    assert said[0].startswith("faster than eager on 1 of 2 tasks")
    assert len(said) == 2
    with pytest.raises(ValueError, match="no tasks"):
        claims({})
