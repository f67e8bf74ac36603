"""Policies on synthetic landscapes at equal evaluations: best speedup reached, and what a learning step costs.

    python tests/benchmarks/policy_synthetic.py --landscapes 10 --evaluations 192

Speedups are of the synthetic landscape (its judge's noise removed); they rank policies and say nothing about kernels.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import time
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.engine.policies.landscapes import Landscape, campaign, synthetic

from workbench_engine.policies.contract import Context, Outcome, Policy, Proposal, Update
from workbench_engine.policies.registry import POLICY_NAMES, make_policy


class Timed:
    """A policy with a stopwatch: seconds of every `propose` and `learn`."""

    def __init__(self, policy: Policy) -> None:
        self.name = policy.name
        self._policy = policy
        self.propose_s: list[float] = []
        self.learn_s: list[float] = []

    async def propose(self, context: Context, n: int) -> list[Proposal]:
        start = time.perf_counter()
        proposals = await self._policy.propose(context, n)
        self.propose_s.append(time.perf_counter() - start)
        return proposals

    async def learn(self, context: Context, outcomes: list[Outcome]) -> Update | None:
        start = time.perf_counter()
        update = await self._policy.learn(context, outcomes)
        self.learn_s.append(time.perf_counter() - start)
        return update

    def state(self) -> bytes:
        return self._policy.state()

    def restore(self, state: bytes) -> None:
        self._policy.restore(state)


def curve(landscape: Landscape, policy: Policy, evaluations: int, seed: int) -> list[float]:
    """Best noiseless speedup after each evaluation, 0 before the first correct one."""
    run = asyncio.run(campaign(policy, landscape.judge, evaluations, seed=seed))
    best = [0.0]
    for point in run.points:
        best.append(max(best[-1], landscape.exact(point)[1] or 0.0))
    return best[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--landscapes", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=192)
    options = parser.parse_args()
    torch.set_num_threads(1)
    marks = sorted({m for m in (16, 32, 64, 96, 192, 300) if m < options.evaluations} | {options.evaluations})
    landscapes = [synthetic(seed) for seed in range(options.landscapes)]
    smallest = min(x.space.size for x in landscapes)
    print(f"{options.landscapes} landscapes, {smallest:,} points or more; median best speedup")
    print(f"{'policy':<14}" + "".join(f"{m:>9}" for m in marks) + f"{'wins':>9}{'propose ms':>12}{'learn ms':>10}")
    final: dict[str, list[float]] = {}
    for name in reversed(POLICY_NAMES):
        curves, timed = [], []
        for seed, landscape in enumerate(landscapes):
            policy = Timed(make_policy(name, landscape.space, seed))
            curves.append(curve(landscape, policy, options.evaluations, seed))
            timed.append(policy)
        final[name] = [c[-1] for c in curves]
        rivals = [max(others) for others in zip(*(v for n, v in final.items() if n != name), strict=True)]
        wins = f"{sum(a > b for a, b in zip(final[name], rivals, strict=True))}/{len(curves)}" if rivals else "-"
        propose = median(t for p in timed for t in p.propose_s) * 1e3
        learn = median(t for p in timed for t in p.learn_s) * 1e3
        row = "".join(f"{median(c[m - 1] for c in curves):9.2f}" for m in marks)
        print(f"{name:<14}{row}{wins:>9}{propose:12.2f}{learn:10.2f}", flush=True)
    gain = median(math.log(a / b) for a, b in zip(final["design-space"], final["random"], strict=True))
    print(f"design-space over random, median: {math.exp(gain):.2f}x (wins: against the rows above)")


if __name__ == "__main__":
    main()
