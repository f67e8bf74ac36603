"""What one verdict costs, and where its seconds go, read from the facts of the evaluation; pure but for the driver."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from workbench.judging import Judge, read_task
from workbench_engine.executor import Job
from workbench_sessions.events import BuildFinished, Event, StageStarted, VerdictReached

TARGET_S = 3.0
"""From submission to verdict, for a kernel of about 1 ms at default settings."""

PARTS = (
    "build",
    "wait",
    "start of the worker",
    "fresh inputs",
    "checks",
    "probes",
    "tripwires",
    "warm-up",
    "pairs",
    "last check",
    "decision",
    "second clock",
    "profile",
    "end of the worker",
    "all cores",
    "rest",
)


class Heard(Struct, frozen=True):
    """A fact, and when it came (seconds after submission)."""

    at_s: float
    event: Event


class Cost(Struct, frozen=True):
    """One verdict. `parts_s` sums to `wall_s`; `candidate_s` is the kernel's time a call."""

    profile: str
    verdict: str
    speedup: float | None
    candidate_s: float | None
    pairs: int
    wall_s: float
    parts_s: dict[str, float]


def cost(profile: str, heard: Sequence[Heard]) -> Cost:
    """Folds the facts of one evaluation. Raises ValueError without a verdict."""
    ends = [h for h in heard if isinstance(h.event, VerdictReached)]
    if not ends:
        raise ValueError("the evaluation reached no verdict")
    verdict = ends[-1].event
    assert isinstance(verdict, VerdictReached)
    wall_s = ends[-1].at_s
    built = [h.at_s for h in heard if isinstance(h.event, BuildFinished)]
    taken = [h.at_s for h in heard if isinstance(h.event, StageStarted) and h.event.stage == "verify"]
    parts = {"build": built[-1] if built else 0.0}
    parts["wait"] = max(0.0, taken[0] - parts["build"]) if taken else 0.0
    for name, seconds in verdict.spent_s.items():
        parts[name] = parts.get(name, 0.0) + seconds
    parts["rest"] = max(0.0, wall_s - sum(parts.values()))
    return Cost(profile, verdict.verdict, verdict.speedup, verdict.candidate_s, verdict.pairs, wall_s, parts)


def median_cost(costs: Sequence[Cost]) -> Cost:
    """Medians of several verdicts, part by part (which need not sum to the median of the whole)."""
    names = [n for n in PARTS if any(n in c.parts_s for c in costs)]
    names += sorted({n for c in costs for n in c.parts_s} - set(names))
    kernels = [c.candidate_s for c in costs if c.candidate_s is not None]
    speedups = [c.speedup for c in costs if c.speedup is not None]
    return Cost(
        profile=costs[0].profile,
        verdict=statistics.mode(c.verdict for c in costs),
        speedup=statistics.median(speedups) if speedups else None,
        candidate_s=statistics.median(kernels) if kernels else None,
        pairs=round(statistics.median(c.pairs for c in costs)),
        wall_s=statistics.median(c.wall_s for c in costs),
        parts_s={n: statistics.median(c.parts_s.get(n, 0.0) for c in costs) for n in names},
    )


def rows(costs: Sequence[Cost]) -> list[list[str]]:
    """One line a part, one column a profile, then the sum."""
    names = [n for n in PARTS if any(n in c.parts_s for c in costs)]
    names += sorted({n for c in costs for n in c.parts_s} - set(names))
    lines = [[name, *(f"{c.parts_s.get(name, 0.0):.3f} s" for c in costs)] for name in names]
    lines.append(["from submission to verdict", *(f"{c.wall_s:.3f} s" for c in costs)])
    lines.append(["pairs", *(str(c.pairs) for c in costs)])
    lines.append(["verdict", *(c.verdict for c in costs)])
    return lines


async def measure(task: str, text: str, kind: str, profiles: Sequence[str], repeat: int, trust: bool) -> list[Cost]:
    """`repeat` verdicts of one candidate in each profile, each built anew; medians by profile. Raises as Judge."""
    found = []
    with TemporaryDirectory(prefix="workbench-cost-") as folder:
        async with Judge(read_task(task), Path(folder), trust=trust) as judges:
            for profile in profiles:
                costs = []
                for number in range(repeat):
                    # Another text, or it would come from the cache of builds.
                    variant = f"{text}\n// {profile} {number}\n" if kind == "kernel" else text
                    costs.append(await _one(judges, f"{profile}{number}", kind, variant, profile))
                found.append(median_cost(costs))
    return found


async def _one(judges: Judge, name: str, kind: str, text: str, profile: str) -> Cost:
    heard: list[Heard] = []
    start_s = time.monotonic()
    job = Job(candidate=name, kind=kind, text=text, profile=profile, promising_above=0.0)
    await judges.executor.run(job, lambda event: heard.append(Heard(time.monotonic() - start_s, event)))
    return cost(profile, heard)
