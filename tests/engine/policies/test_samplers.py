"""What holds for every policy over a design space: no point twice, exhaustion, determinism, exact resume."""

import asyncio
import random

import pytest
from tests.engine.policies.landscapes import campaign, synthetic

from workbench_engine.policies.contract import Context, Outcome, Policy, Proposal, Scored
from workbench_engine.policies.registry import POLICY_NAMES, make_policy
from workbench_engine.rl.reward import reward_of
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel

ALL = pytest.mark.parametrize("name", POLICY_NAMES)


def small() -> DesignSpace:
    dims = tuple(Dimension(n, "loops", tuple(range(s)), "", ordered=s > 2) for n, s in (("a", 3), ("b", 2), ("c", 4)))
    return DesignSpace(
        "small", dims, lambda v: Kernel(f"// {v['a']}{v['b']}{v['c']}", ("-O3",)), dict.fromkeys("abc", 0)
    )


def play(policy: Policy, groups: int, start: int = 0, size: int = 4) -> list[Proposal]:
    """A few groups with made-up rewards that depend only on the proposal."""
    made: list[Proposal] = []
    for g in range(start, start + groups):
        pool = [Scored(f"c{p.sample}", p.text, p.point, rate(p), "FASTER", 0, g) for p in made[-6:]]
        pool.sort(key=lambda s: s.speedup or 0.0)
        context = Context("small", g, 0, exemplars=(pool[0], pool[-1]) if len(pool) > 1 else ())
        proposals = asyncio.run(policy.propose(context, size))
        outcomes = [Outcome(p.sample, reward_of("FASTER", rate(p)), True, rate(p)) for p in proposals]
        asyncio.run(policy.learn(context, outcomes))
        made += proposals
    return made


def rate(p: Proposal) -> float:
    return 0.5 + random.Random(p.text).random()


@ALL
def test_a_small_space_is_offered_whole_once_and_then_nothing(name: str) -> None:
    space = small()
    made = play(make_policy(name, space, 1), groups=10)
    keys = [p.point.key() for p in made if p.point is not None]
    assert len(keys) == len(set(keys)) == space.size == 24
    assert all(p.text == space.render(p.point).text() for p in made if p.point is not None)
    assert all(p.kind == "kernel" and p.origin.policy == name for p in made)


@ALL
def test_no_point_twice_in_a_large_space(name: str) -> None:
    landscape = synthetic(3)
    run = asyncio.run(campaign(make_policy(name, landscape.space, 3), landscape.judge, 120))
    assert len({p.key() for p in run.points}) == 120


@ALL
def test_the_seed_decides(name: str) -> None:
    texts = [[p.text for p in play(make_policy(name, small(), seed), 4)] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


@ALL
def test_a_restored_policy_goes_on_exactly(name: str) -> None:
    landscape = synthetic(5)
    policy = make_policy(name, landscape.space, 7)
    play(policy, 3)
    # Between propose and learn, where a crash is likeliest.
    context = Context("t", 3, 0)
    waiting = asyncio.run(policy.propose(context, 4))
    other = make_policy(name, landscape.space, 99)
    other.restore(policy.state())
    assert other.state() == policy.state()
    outcomes = [Outcome(p.sample, float(i), True, 1.0) for i, p in enumerate(waiting)]
    assert asyncio.run(other.learn(context, outcomes)) == asyncio.run(policy.learn(context, outcomes))
    assert play(other, 4, start=4) == play(policy, 4, start=4)
    assert other.state() == policy.state()


@ALL
def test_a_state_of_something_else_is_refused_and_changes_nothing(name: str) -> None:
    policy = make_policy(name, small(), 0)
    play(policy, 2)
    before = policy.state()
    other = next(n for n in POLICY_NAMES if n != name)
    alien = DesignSpace("other", small().dimensions, lambda v: Kernel("", ()), dict.fromkeys("abc", 0))
    for bad in (
        b"",
        b"nonsense",
        before[:-3],
        make_policy(other, small(), 0).state(),
        make_policy(name, alien, 0).state(),
    ):
        with pytest.raises(ValueError, match="state"):
            policy.restore(bad)
    assert policy.state() == before


@ALL
def test_asking_for_nothing_gives_nothing(name: str) -> None:
    assert asyncio.run(make_policy(name, small(), 0).propose(Context("small", 0, 0), 0)) == []
