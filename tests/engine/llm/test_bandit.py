from __future__ import annotations

import asyncio
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.llm.bandit import Arm, BanditSettings, RoutingModel, cheapness, choose, lower_cost, scores
from workbench_engine.llm.contract import Choice, Completion, Message, OnChunk, Request
from workbench_engine.llm.errors import CapReached, ModelRefusedRequest, ModelUnavailable

REQUEST = Request((Message("user", "x"),))
PLAIN = BanditSettings(epsilon=0.0, cost_weight=0.0)


def arm(name: str, rewards: list[float], costs: list[float] | None = None) -> Arm:
    made = Arm(name)
    for i, r in enumerate(rewards):
        made = made.asked().paid(r, costs[i] if costs else None, 0.95)
    return made


def test_score_is_the_formula() -> None:
    # One reward each: means e^0.5 - 1 and e^0.1 - 1; t = 2, n = 1.
    arms = (arm("a", [0.5], [1.0]), arm("b", [0.1], [4.0]))
    got = scores(arms, BanditSettings(explore=1.0, cost_weight=0.5))
    bonus = math.sqrt(2 * math.log(2))
    # Medians: 2.5 / 1 and 2.5 / 4, divided by the larger: 1 and 1/4.
    assert got[0] == pytest.approx(0.5 * (1.0 + bonus) + 0.5)
    assert got[1] == pytest.approx(0.5 * (math.expm1(0.1) / math.expm1(0.5) + bonus) + 0.5 * 0.25)


def test_losses_count_as_nothing_not_as_punishment() -> None:
    assert arm("a", [-3.0]).mean == arm("b", [0.0]).mean == 0.0
    assert arm("a", [math.nan]).mean == 0.0


def test_pulls_in_flight_count_so_that_one_endpoint_does_not_get_them_all() -> None:
    rng = random.Random(0)
    arms = [arm("a", [0.0]), arm("b", [0.0])]
    asked = [0, 0]
    for _ in range(10):
        i = choose(arms, PLAIN, rng)
        arms[i] = arms[i].asked()
        asked[i] += 1
    assert asked == [5, 5]


def test_unseen_come_first_and_cheap_ones_are_preferred_at_equal_gain() -> None:
    rng = random.Random(1)
    assert choose((arm("a", [9.0]), Arm("new")), PLAIN, rng) == 1
    arms = (arm("dear", [0.2, 0.2], [10.0, 10.0]), arm("cheap", [0.2, 0.2], [1.0, 1.0]))
    assert choose(arms, BanditSettings(epsilon=0.0), rng) == 1


def test_what_costs_nothing_or_is_unknown_stays_finite() -> None:
    assert cheapness((Arm("a"), Arm("b")), 1.0) == (1.0, 1.0)
    got = cheapness((arm("free", [0.0], [0.0]), arm("dear", [0.0], [2.0])), 1.0)
    assert got[0] == 1.0 and 0.0 < got[1] < 1.0
    assert lower_cost(arm("one", [0.0], [3.0])) == 3.0
    assert lower_cost(arm("noisy", [0.0] * 2, [0.0, 10.0])) == pytest.approx(0.5)


rewards = st.lists(st.floats(-5, 60, allow_nan=False), max_size=12)


@given(st.lists(st.tuples(rewards, st.floats(0, 1e6)), min_size=1, max_size=5), st.integers(0, 2**31))
def test_scores_are_never_nan_and_a_choice_is_always_an_arm(made: list[tuple[list[float], float]], seed: int) -> None:
    arms = tuple(arm(str(i), r, [c] * len(r)) for i, (r, c) in enumerate(made))
    assert not any(math.isnan(s) for s in scores(arms, BanditSettings()))
    assert 0 <= choose(arms, BanditSettings(), random.Random(seed)) < len(arms)


@given(rewards, st.floats(0.0, 3.0), st.floats(0.0, 3.0))
def test_a_larger_gain_never_lowers_the_mean(before: list[float], small: float, more: float) -> None:
    old = arm("a", before)
    assert old.paid(small + more, None, 0.95).mean >= old.paid(small, None, 0.95).mean


def played(settings: BanditSettings, gains: list[float], costs: list[float], rounds: int, seed: int) -> list[int]:
    """How often each of several simulated endpoints was asked. Few candidates improve, by exponential gains."""
    rng = random.Random(seed)
    arms = [Arm(str(i)) for i in range(len(gains))]
    for _ in range(rounds):
        i = choose(arms, settings, rng)
        gain = rng.expovariate(1.0 / gains[i]) if rng.random() < 0.3 else -1.0
        arms[i] = arms[i].asked().paid(gain, costs[i] * rng.uniform(0.8, 1.2), settings.decay)
    return [a.pulls for a in arms]


def test_regret_is_well_below_that_of_asking_all_alike() -> None:
    gains, costs = [0.02, 0.4, 0.05], [1.0, 1.0, 1.0]
    regret = 0.0
    for seed in range(20):
        asked = played(BanditSettings(), gains, costs, 300, seed)
        regret += sum(n * (max(gains) - g) for n, g in zip(asked, gains, strict=True)) / 20
    alike = sum(100 * (max(gains) - g) for g in gains)
    assert regret < 0.6 * alike
    # Epsilon alone costs 0.2 * alike: nothing can be below.
    assert regret > 0.2 * alike


def test_at_equal_gains_the_cheaper_one_is_asked_more() -> None:
    total = [0, 0]
    for seed in range(20):
        asked = played(BanditSettings(), [0.1, 0.1], [8.0, 1.0], 200, seed)
        total = [total[0] + asked[0], total[1] + asked[1]]
    assert total[1] > 2 * total[0]


class Scripted:
    """Answers with its name, or raises what it is told to."""

    def __init__(self, name: str, error: Exception | None = None) -> None:
        self.name, self.error, self.closed = name, error, False

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        if self.error is not None:
            raise self.error
        return Completion((Choice(self.name),) * request.n)

    async def aclose(self) -> None:
        self.closed = True


def test_one_that_is_away_is_passed_over_and_all_away_tells_the_soonest() -> None:
    away = Scripted("away", ModelUnavailable("gone", retry_after_s=9.0))
    model = RoutingModel({"away": away, "here": Scripted("here")})
    for _ in range(5):
        assert asyncio.run(model.complete(REQUEST)).endpoint == "here"
    assert [a.pulls for a in model.arms] == [0, 5]
    both = RoutingModel({"a": away, "b": Scripted("b", ModelUnavailable("gone too", retry_after_s=2.0))})
    with pytest.raises(ModelUnavailable) as caught:
        asyncio.run(both.complete(REQUEST))
    assert caught.value.retry_after_s == 2.0


@pytest.mark.parametrize("error", [CapReached("money", "spent"), ModelRefusedRequest("bad request")])
def test_what_another_endpoint_would_not_mend_is_raised(error: Exception) -> None:
    model = RoutingModel({"only": Scripted("only", error)})
    with pytest.raises(type(error)):
        asyncio.run(model.complete(REQUEST))
    assert model.arms[0].pulls == 0


def test_what_was_learned_survives_by_name() -> None:
    model = RoutingModel({"a": Scripted("a"), "b": Scripted("b")})
    asyncio.run(model.complete(REQUEST))
    model.credit("a", 0.5, 1.0)
    model.credit("unknown", 9.0, 1.0)
    later = RoutingModel({"c": Scripted("c"), "a": Scripted("a")})
    later.restore(model.state())
    by_name = {a.name: a for a in later.arms}
    assert by_name["a"].mean == pytest.approx(math.expm1(0.5)) and by_name["c"].pulls == 0 and len(by_name) == 2
    with pytest.raises(ValueError, match="not the state"):
        later.restore(b"\xc1")
