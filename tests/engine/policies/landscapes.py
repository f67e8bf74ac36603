"""Synthetic design spaces and a conductor in miniature, for judging policies without a compiler.

A landscape is made like real ones: the time is a sum of a memory, an arithmetic and an overhead part, each scaled by a
few choices; the algorithm decides which choices matter; pairs of choices interact; some choices or pairs fail; timings
are noisy. Values are drawn from a seed, so a policy cannot be tuned to one of them.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import NamedTuple

from workbench_engine.policies.contract import Context, Outcome, Policy, Scored, Update
from workbench_engine.rl.contrastive import ContrastiveSettings, draw_exemplars
from workbench_engine.rl.reward import reward_of
from workbench_engine.search.population import Population
from workbench_engine.tasks.design import DesignPoint, DesignSpace, Dimension, Kernel
from workbench_sessions.events import Verdict

Judged = tuple[Verdict, float | None]


class Landscape(NamedTuple):
    """A space and its judge: verdict and noisy speedup of a point; `exact` is without noise."""

    space: DesignSpace
    judge: Callable[[DesignPoint], Judged]
    exact: Callable[[DesignPoint], Judged]


class Campaign(NamedTuple):
    """What one run did: `best` after each evaluation (0 before the first correct one) and the learning steps."""

    best: list[float]
    updates: list[Update]
    points: list[DesignPoint]


def synthetic(seed: int, noise: float = 0.03, dimensions: int = 14) -> Landscape:
    """A landscape of 14 dimensions and more than 1e5 points."""
    rng = random.Random(seed)
    sizes = [5, *(rng.choice((2, 3, 3, 4, 4, 5)) for _ in range(dimensions - 1))]
    dims = tuple(
        Dimension(f"d{i}", "tiling" if i % 3 == 2 else "loops", tuple(range(s)), "", ordered=i % 3 == 2 and s > 2)
        for i, s in enumerate(sizes)
    )
    naive = {d.name: 0 for d in dims}
    space = DesignSpace(f"synthetic-{seed}", dims, lambda v: Kernel("// " + repr(sorted(v.items())), ()), naive)

    def effect(d: int, scale: float) -> list[float]:
        if dims[d].ordered:
            peak, width = rng.uniform(0, sizes[d] - 1), rng.uniform(0.4, 1.2)
            return [-scale * min(1.5, abs(i - peak) * width) for i in range(sizes[d])]
        return [rng.gauss(0.0, scale) for _ in range(sizes[d])]

    parts = []
    for share in (1.0, 1.0, 0.3):
        matter = rng.sample(range(1, dimensions), 5)
        parts.append((share, {d: effect(d, rng.choice((0.1, 0.3, 0.8))) for d in matter}))
    algorithm = [rng.gauss(0.0, 0.6) for _ in range(sizes[0])]
    gates = {(a, p): rng.gauss(0.0, 0.5) for a in range(sizes[0]) for p in range(3)}
    blind = {(a, d) for a in range(sizes[0]) for d in range(1, dimensions) if rng.random() < 0.25}
    pairs = {}
    for _ in range(10):
        i, j = rng.sample(range(dimensions), 2)
        table = {(a, b): rng.gauss(0.0, 0.35) for a in range(sizes[i]) for b in range(sizes[j])}
        pairs[i, j] = table
    broken: list[tuple[dict[int, int], Verdict]] = []
    kinds: tuple[Verdict, ...] = ("FAILED", "WRONG", "WRONG", "WRONG", "FAILED")
    for verdict in kinds:
        i, j = rng.sample(range(dimensions), 2)
        broken.append(({i: rng.randrange(sizes[i]), j: rng.randrange(sizes[j])}, verdict))
    alone = rng.choice([d for d in range(1, dimensions) if sizes[d] > 2])
    broken.append(({alone: rng.randrange(sizes[alone])}, "WRONG"))

    def exact(point: DesignPoint) -> Judged:
        x = space.encode(point)
        for rule, verdict in broken:
            if all(x[d] == i for d, i in rule.items()):
                return verdict, None
        total = 0.0
        for p, (share, effects) in enumerate(parts):
            log_t = gates[x[0], p] - sum(e[x[d]] for d, e in effects.items() if (x[0], d) not in blind)
            total += share * math.exp(log_t)
        gain = algorithm[x[0]] + sum(t[x[i], x[j]] for (i, j), t in pairs.items())
        return "FASTER", 0.5 * math.exp(gain) * 2.3 / total

    def judge(point: DesignPoint) -> Judged:
        verdict, speedup = exact(point)
        if speedup is None:
            return verdict, None
        return verdict, speedup * math.exp(random.Random(f"{seed} {point.key()}").gauss(0.0, noise))

    return Landscape(space, judge, exact)


async def campaign(
    policy: Policy, judge: Callable[[DesignPoint], Judged], evaluations: int, group: int = 8, seed: int = 0
) -> Campaign:
    """Run a policy as the conductor does: islands, parents, exemplars by score bucket, one group after another."""
    rng = random.Random(seed)
    population = Population(islands=2, archive=40, seed=seed)
    best: list[float] = []
    updates: list[Update] = []
    points: list[DesignPoint] = []
    for number in itertools.count():
        island = population.next_island()
        parents = population.pick_parents(island, rng)
        exemplars = draw_exemplars(population.scored(island), ContrastiveSettings(), rng)
        context = Context("synthetic", number, island, parents, exemplars)
        proposals = await policy.propose(context, min(group, evaluations - len(best)))
        if not proposals:
            break
        outcomes = []
        for i, proposal in enumerate(proposals):
            assert proposal.point is not None
            verdict, speedup = judge(proposal.point)
            points.append(proposal.point)
            best.append(max(best[-1] if best else 0.0, speedup or 0.0))
            outcomes.append(Outcome(proposal.sample, reward_of(verdict, speedup), speedup is not None, speedup))
            scored = Scored(f"g{number}.{i}", proposal.text, proposal.point, speedup, verdict, island, number, "why")
            population.add(scored, [p.candidate for p in parents[:1]])
        update = await policy.learn(context, outcomes)
        if update is not None:
            updates.append(update)
        population.migrate()
    return Campaign(best, updates, points)
