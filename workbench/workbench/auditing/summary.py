"""Claimed against refereed, per level and over all; pure.

The means over *all* rows count every row without a usable kernel as 1.0 (the reference itself), and every row without
a claim as 1.0, as the published averages did. The means over *valid* rows leave out what the referee did not find
correct; claimed and refereed are then over the same rows. Between the two are the *judged* rows: all but those that
could not be judged here, so that what this machine cannot do is not held against a claim.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from workbench.auditing.rows import NO_CODE, NO_LEVEL, NOT_JUDGED, STATES, UNUSABLE, VALID, Outcome, natural
from workbench_engine.referee.claims import RESAMPLES, holm, p_faster
from workbench_engine.referee.statistics import geometric_mean_interval

ALL = "all"
Vector = np.ndarray[tuple[int], np.dtype[np.float64]]


class Numbers(Struct, frozen=True):
    """Of a list of speedups (ratios). `fast_1`, `fast_1_2`: share of them above 1 and above 1.2, correct ones only.

    `low`, `high`: 95 % interval of the geometric mean, bootstrapped over rows and over the pairs of each row.
    """

    n: int
    mean: float
    geomean: float
    median: float
    p25: float
    p75: float
    max: float
    fast_1: float
    fast_1_2: float
    low: float | None = None
    high: float | None = None


class Group(Struct, frozen=True):
    """A level, or all of them. `rows` counts `absent` ones too (expected tasks that the input does not hold).

    `verdicts` has every state that occurs. `no_code`, `unusable`, `not_judged`, `absent` are the rows counted as 1.0;
    `unclaimed` those whose claim is missing and counts as 1.0. `faster` rows have the verdict FASTER; `holm_faster` of
    them remain when all `rows` are tested together (Holm at 5 %; a row without a usable kernel is in it with p = 1).
    `fallbacks` are rows with code for another device, whose fallback was judged.
    """

    name: str
    rows: int
    absent: int
    verdicts: dict[str, int]
    valid: int
    unusable: int
    no_code: int
    not_judged: int
    unclaimed: int
    faster: int
    holm_faster: int
    fallbacks: int
    claimed: Numbers | None
    refereed: Numbers | None
    judged_claimed: Numbers | None
    judged_refereed: Numbers | None
    valid_claimed: Numbers | None
    valid_refereed: Numbers | None


def summarise(
    outcomes: Sequence[Outcome],
    claim: str,
    expected: Mapping[str, int] | None = None,
    seed: int = 0,
    resamples: int = 1000,
    p_resamples: int = RESAMPLES,
) -> list[Group]:
    """One group a level, then "all". `claim` names the claims compared, `expected` the tasks a level should have."""
    expected = expected or {}
    levels = sorted({*(o.level for o in outcomes), *expected}, key=natural)
    groups = []
    # One p-value a row, whichever group it is looked at in.
    p = {o.key: _p_value(o, seed, p_resamples) for o in outcomes}
    total_absent = 0
    for level in levels:
        own = [o for o in outcomes if o.level == level]
        absent = max(0, expected.get(level, 0) - len({o.task for o in own}))
        total_absent += absent
        groups.append(_group(level, own, absent, claim, p, seed, resamples))
    # A row that does not even say its level is one of those that seem absent.
    total_absent = max(0, total_absent - sum(o.level == NO_LEVEL for o in outcomes))
    return [*groups, _group(ALL, list(outcomes), total_absent, claim, p, seed, resamples)]


def _p_value(outcome: Outcome, seed: int, resamples: int) -> float:
    if outcome.state != "FASTER" or not outcome.d:
        return 1.0
    rng = np.random.default_rng((seed, outcome.number))
    return p_faster(np.asarray(outcome.d, dtype=np.float64), outcome.delta or 0.0, rng, resamples)


def numbers(values: Sequence[float], correct: Sequence[bool] | None = None) -> Numbers | None:
    """None for an empty list. `correct`: which of them may count as fast (default: all)."""
    if not values:
        return None
    fast = [v if ok else 0.0 for v, ok in zip(values, correct or [True] * len(values), strict=True)]
    p25, median, p75 = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    return Numbers(
        n=len(values),
        mean=float(np.mean(values)),
        geomean=float(np.exp(np.mean(np.log(values)))),
        median=median,
        p25=p25,
        p75=p75,
        max=max(values),
        fast_1=sum(v > 1.0 for v in fast) / len(values),
        fast_1_2=sum(v > 1.2 for v in fast) / len(values),
    )


def _group(
    name: str, own: list[Outcome], absent: int, claim: str, p: Mapping[str, float], seed: int, resamples: int
) -> Group:
    counts = Counter(o.state for o in own)
    valid = [o for o in own if o.state in VALID]
    judged = [o for o in own if o.state not in NOT_JUDGED]
    ones = [1.0] * absent
    rejected = holm([*(p[o.key] for o in own), *ones])
    return Group(
        name=name,
        rows=len(own) + absent,
        absent=absent,
        verdicts={state: counts[state] for state in STATES if counts[state]},
        valid=len(valid),
        unusable=sum(counts[s] for s in UNUSABLE),
        no_code=sum(counts[s] for s in NO_CODE),
        not_judged=sum(counts[s] for s in NOT_JUDGED),
        unclaimed=sum(o.claims.get(claim) is None for o in own) + absent,
        faster=counts["FASTER"],
        holm_faster=sum(rejected),
        fallbacks=sum(any(f.code == "device-code-idle" for f in o.findings) for o in own),
        claimed=numbers([*(o.claims.get(claim) or 1.0 for o in own), *ones]),
        refereed=_with_interval([o.counted for o in own] + ones, [_pairs(o) for o in own], absent, seed, resamples),
        judged_claimed=numbers([o.claims.get(claim) or 1.0 for o in judged]),
        judged_refereed=_with_interval([o.counted for o in judged], [_pairs(o) for o in judged], 0, seed, resamples),
        valid_claimed=numbers([o.claims.get(claim) or 1.0 for o in valid]),
        valid_refereed=_with_interval([o.counted for o in valid], [_pairs(o) for o in valid], 0, seed, resamples),
    )


def _with_interval(values: list[float], pairs: list[Vector], absent: int, seed: int, resamples: int) -> Numbers | None:
    from msgspec.structs import replace

    found = numbers(values)
    if found is None:
        return None
    rng = np.random.default_rng(seed)
    _, low, high = geometric_mean_interval([*pairs, *([np.zeros(1)] * absent)], rng, resamples)
    return replace(found, low=low, high=high)


def _pairs(outcome: Outcome) -> Vector:
    """The ln ratios of a row as it is counted: those measured, else a single 0 (or ln of the speedup without pairs)."""
    if outcome.state in VALID and outcome.d:
        return np.asarray(outcome.d, dtype=np.float64)
    return np.array([math.log(outcome.counted)])
