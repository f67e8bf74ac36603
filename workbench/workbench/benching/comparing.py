"""Comparing policies at equal evaluations; pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

from workbench.benching.runs import Finished, Point


class Cell(Struct, frozen=True):
    """The runs of one policy on one task: `best` holds each seed's best refereed speedup, 1.0 for nothing faster."""

    task: str
    policy: str
    best: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.best)


class Comparison(Struct, frozen=True):
    """One policy against another over the tasks both have. `p` is the exact two-sided sign test, ties left out."""

    policy: str
    against: str
    wins: int
    losses: int
    ties: int
    geomean_ratio: float
    p: float


def best_at(curve: Sequence[Point], evaluations: int) -> float:
    """Best refereed speedup after so many evaluations; 1.0 (the reference itself) before anything is faster."""
    return max((p.speedup for p in curve if p.evaluations <= evaluations), default=1.0)


def cells(runs: Sequence[Finished], evaluations: int) -> list[Cell]:
    """Runs grouped by task and policy, judged after the same number of evaluations."""
    grouped: dict[tuple[str, str], list[float]] = {}
    for run in sorted(runs, key=lambda r: r.seed):
        grouped.setdefault((run.task, run.policy), []).append(best_at(run.curve, evaluations))
    return [Cell(task, policy, best) for (task, policy), best in grouped.items()]


def compare(found: Sequence[Cell], policy: str, against: str) -> Comparison:
    """Medians a task against medians. Raises ValueError when no task has both."""
    mine = {c.task: c.median for c in found if c.policy == policy}
    theirs = {c.task: c.median for c in found if c.policy == against}
    logs = [math.log(mine[task] / theirs[task]) for task in mine if task in theirs]
    if not logs:
        raise ValueError(f"no task has runs of both {policy} and {against}")
    wins, losses = sum(x > 0 for x in logs), sum(x < 0 for x in logs)
    return Comparison(
        policy=policy,
        against=against,
        wins=wins,
        losses=losses,
        ties=len(logs) - wins - losses,
        geomean_ratio=math.exp(statistics.fmean(logs)),
        p=sign_test(wins, losses),
    )


def sign_test(wins: int, losses: int) -> float:
    """Exact two-sided p of so uneven a split under a fair coin (Dixon and Mood 1946)."""
    n, k = wins + losses, min(wins, losses)
    tail: float = sum(math.comb(n, i) for i in range(k + 1)) / float(2**n)
    return min(1.0, 2.0 * tail)


def median_curve(runs: Sequence[Finished], evaluations: int) -> list[float]:
    """Geometric mean over tasks of the median over seeds of the best so far, for 1..evaluations."""
    tasks = sorted({run.task for run in runs})
    curve = []
    for n in range(1, evaluations + 1):
        medians = [statistics.median(best_at(r.curve, n) for r in runs if r.task == task) for task in tasks]
        curve.append(statistics.geometric_mean(medians))
    return curve
