import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.policies.contract import Scored
from workbench_engine.search.population import Population, PopulationSettings, parent_weights


def one(name: str, speedup: float | None, island: int = 0, feedback: str = "") -> Scored:
    return Scored(name, "", None, speedup, "FASTER" if speedup else "WRONG", island, 0, feedback)


def filled(islands: int = 2, each: int = 10, seed: int = 0) -> Population:
    population = Population(islands=islands, seed=seed)
    for i in range(each):
        for island in range(islands):
            population.add(one(f"{island}.{i}", 1.0 + i + island / 10, island))
    return population


def test_every_island_is_sampled_in_turn() -> None:
    population = filled(islands=3)
    assert Counter(population.next_island() for _ in range(30)) == {0: 10, 1: 10, 2: 10}


def test_parents_come_from_their_island_and_differ() -> None:
    population = filled()
    for _ in range(50):
        for island in (0, 1):
            parents = population.pick_parents(island)
            assert len({p.candidate for p in parents}) == 2
            assert all(p.island == island for p in parents)


def test_weights_by_hand() -> None:
    # median 1, MAD 1: z = -1, 0, 1 times sharpness 1
    weights = parent_weights([0.0, 1.0, 2.0], [0, 1, 3], PopulationSettings(sharpness=1.0))
    assert weights == pytest.approx([0.26894, 0.5 / 2, 0.73106 / 4], abs=1e-5)


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=40))
def test_weights_stay_positive_and_finite(fitness: list[float]) -> None:
    assert all(0.0 < w <= 1.0 for w in parent_weights(fitness, [0] * len(fitness)))


def test_better_and_childless_candidates_are_parents_more_often() -> None:
    population = Population(islands=1, settings=PopulationSettings(parents=1))
    for name, speedup in (("slow", 0.5), ("middle", 1.0), ("fast", 2.0), ("fertile", 2.0)):
        population.add(one(name, speedup))
    for i in range(9):
        population.add(one(f"child{i}", None), parents=["fertile"])
    counts = Counter(population.pick_parents(0)[0].candidate for _ in range(2000))
    assert counts["fast"] > 4 * counts["fertile"] > 0
    assert counts["fast"] > 100 * max(1, counts["slow"])


def test_rejected_and_held_candidates_are_no_parents_until_given_back() -> None:
    population = Population(islands=1)
    population.add(one("a", 3.0))
    population.add(one("b", 1.0))
    population.reject("a")
    assert population.best == one("b", 1.0)
    assert population.pick_parents(0) == (one("b", 1.0),)
    population.hold("b")
    assert population.pick_parents(0) == () and population.best is None and population.scored() == ()
    population.restore("a")
    assert population.pick_parents(0) == (one("a", 3.0),)
    population.release("b")
    assert {p.candidate for p in population.pick_parents(0)} == {"a", "b"}


def test_a_decision_may_come_before_the_verdict() -> None:
    population = Population(islands=1)
    population.hold("a")
    population.add(one("a", 2.0))
    assert population.scored() == ()


def test_fix_mode_offers_the_latest_incorrect_ones_with_feedback() -> None:
    population = Population(islands=2)
    population.add(one("silent", None))
    population.add(one("early", None, feedback="does not compile"))
    population.add(one("late", None, feedback="wrong at 3"))
    assert [p.candidate for p in population.pick_parents(0)] == ["late", "early"]
    assert [p.candidate for p in population.pick_parents(1)] == ["late", "early"]
    population.add(one("right", 0.1, island=1))
    assert [p.candidate for p in population.pick_parents(0)] == ["right"]


def test_migration_is_a_ring_at_its_interval_and_moves_the_best() -> None:
    population = filled(islands=3)
    interval = PopulationSettings().migration_interval
    rounds = [population.migrate() for _ in range(2 * interval)]
    assert [bool(r) for r in rounds] == [(i + 1) % interval == 0 for i in range(2 * interval)]
    first = rounds[interval - 1]
    assert [(m.source, m.target, m.candidate) for m in first] == [(0, 1, "0.9"), (1, 2, "1.9"), (2, 0, "2.9")]
    assert "2.9" in {s.candidate for s in population.scored(0)}
    assert next(s for s in population.scored(0) if s.candidate == "2.9").island == 0


def test_one_island_never_migrates() -> None:
    population = filled(islands=1)
    assert all(population.migrate() == [] for _ in range(20))


def test_nobody_migrates_twice_to_the_same_island() -> None:
    population = filled(islands=2, each=3)
    moved = [m for _ in range(80) for m in population.migrate()]
    assert len(moved) == len(set(moved)) and moved


def test_the_archive_keeps_the_best() -> None:
    population = Population(islands=1, archive=5)
    order = list(range(20))
    random.Random(1).shuffle(order)
    for i in order:
        population.add(one(f"c{i}", 1.0 + i))
        population.add(one(f"w{i}", None))
    assert {s.candidate for s in population.scored(0)} == {f"c{i}" for i in range(15, 20)}


def test_it_is_rebuilt_by_the_same_calls() -> None:
    def play(population: Population) -> list[object]:
        seen: list[object] = []
        for i in range(40):
            island = population.next_island()
            parents = population.pick_parents(island)
            population.add(one(f"c{i}", 1.0 + (i * 7 % 11), island), [p.candidate for p in parents])
            seen += [island, [p.candidate for p in parents], population.migrate()]
        return seen

    assert play(Population(seed=4)) == play(Population(seed=4))
    assert play(Population(seed=4)) != play(Population(seed=5))


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 island"):
        Population(islands=0)
    with pytest.raises(ValueError, match="migration_rate"):
        PopulationSettings(migration_rate=0.0)
    with pytest.raises(ValueError, match="island 2"):
        Population(islands=2).add(one("a", 1.0, island=2))
