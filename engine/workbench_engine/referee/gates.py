"""Gates on what the clocks say: reasons not to believe a series of pairs, however right the answers were.

Pure decisions; constants are calibrated on the honest controls (`workbench bench referee`), which must pass all of
them on a loaded machine too. (Referee's facts, §5.8.)
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from workbench_engine.referee.statistics import Array

IDLE_SHARE = 0.1
IDLE_S = 150e-6
"""CPU time outside the calls that is allowed, per pair: a share of the timed block, and an absolute part."""

STOLEN = 2.0
"""Who uses so many times the processor in the reference's turn as in his own has something running to slow it."""

CORES = 1.25
CORES_S = 300e-6
"""On one core a block cannot use more processor than it takes: beyond this there are helpers on other cores."""

BRINGING = 4.0
"""Bringing an answer (copying it, however it lies in memory) may cost so many times what the reference's costs."""

CLAIM_SHARE = 0.6
CLAIM_S = 200e-6
"""A block claimed shorter than this share of the processor time it used, less this many seconds, is a false claim."""

WARM_RATIO = 4.0
"""An untimed call may take so many times as long as a timed one, more than the reference's does."""

GAP = 10.0
"""Two groups of calls this far apart are no noise of one kind of call."""

CHAIN_RATIO = 1.15
CHAIN_S = 20e-6


class Gate(Struct, frozen=True):
    """A gate that closed: the finding's code and the arithmetic, for a person."""

    code: str
    text: str


class Block(Struct, frozen=True):
    """What one side did in one pair, in CPU seconds of its process as seen from outside; so other load does not count.

    `warm_s`: of one untimed call. `timed_s`: of the block of `calls` timed ones, for which the process itself claims
    `claimed_s` of wall time; `wall_s` is what the block took outside. `idle_s`: while no call ran, of which
    `stolen_s` while the other side had its turn.
    """

    warm_s: float
    timed_s: float
    claimed_s: float
    idle_s: float
    calls: int
    wall_s: float = 0.0
    stolen_s: float = 0.0


def hidden_work(candidate: list[Block], reference: list[Block]) -> Gate | None:
    """CPU time while no call ran, against the same of the reference's process, which gets the same requests."""
    if not candidate:
        return None
    # Means: work that only some pairs bring to light (when an answer is looked at) must count too.
    idle = float(np.mean([b.idle_s for b in candidate]))
    theirs = float(np.mean([b.idle_s for b in reference])) if reference else 0.0
    timed = float(np.mean([b.timed_s for b in candidate]))
    allowed = IDLE_SHARE * timed + 2.0 * theirs + IDLE_S
    if idle <= allowed:
        return None
    stolen = float(np.mean([b.stolen_s for b in candidate]))
    if stolen > 0.5 * idle and stolen > STOLEN * timed:
        return Gate(
            "reference-slowed",
            f"used {stolen * 1e6:.0f} µs of processor a pair while the reference had its turn, {timed * 1e6:.0f} µs "
            "for its own calls: what it keeps running slows the reference",
        )
    return Gate(
        "hidden-work",
        f"used {idle * 1e6:.0f} µs of processor a pair while no call was running; its timed calls used "
        f"{timed * 1e6:.0f} µs, the reference used {theirs * 1e6:.0f} µs (allowed {allowed * 1e6:.0f} µs)",
    )


def lazy_answers(candidate_s: list[float], reference_s: list[float], timed_s: float) -> Gate | None:
    """Processor seconds for bringing answers back, of both sides, against a block's (`timed_s`): work put off until an
    answer is looked at shows here."""
    if not candidate_s or not reference_s:
        return None
    own, theirs = float(np.mean(candidate_s)), float(np.mean(reference_s))
    allowed = BRINGING * theirs + IDLE_S + 0.25 * timed_s
    if own <= allowed:
        return None
    return Gate(
        "hidden-work",
        f"bringing its answers back used {own * 1e6:.0f} µs of processor, the reference's {theirs * 1e6:.0f} µs; its "
        f"calls used {timed_s * 1e6:.0f} µs (allowed {allowed * 1e6:.0f} µs)",
    )


def false_claim(candidate: list[Block]) -> Gate | None:
    """The worker's own clock against the processor time it used: on one core the clock cannot have run slower."""
    if not candidate:
        return None
    claimed = float(np.median([b.claimed_s for b in candidate]))
    used = float(np.median([b.timed_s for b in candidate]))
    if claimed >= CLAIM_SHARE * used - CLAIM_S:
        return None
    return Gate(
        "clock-disagreement",
        f"its process claims {claimed * 1e6:.1f} µs for a block that used {used * 1e6:.1f} µs of processor",
    )


def helpers(candidate: list[Block]) -> Gate | None:
    """Processor time against wall time: one core cannot give more of the one than of the other."""
    if not candidate:
        return None
    used = float(np.median([b.timed_s for b in candidate]))
    wall = float(np.median([b.wall_s for b in candidate]))
    if used <= CORES * wall + CORES_S:
        return None
    return Gate(
        "extra-cores",
        f"a block took {wall * 1e6:.1f} µs on one core and used {used * 1e6:.1f} µs of processor: also elsewhere",
    )


def work_outside(candidate: list[Block], reference: list[Block]) -> Gate | None:
    """Untimed calls against timed ones: who does the work of timed calls beforehand has slow untimed ones."""
    if len(candidate) < 4:
        return None
    own = float(np.median([b.warm_s / max(b.timed_s / b.calls, 1e-9) for b in candidate]))
    theirs = float(np.median([b.warm_s / max(b.timed_s / b.calls, 1e-9) for b in reference])) if reference else 1.0
    warm = float(np.median([b.warm_s for b in candidate]))
    allowed = WARM_RATIO * max(1.0, theirs)
    if own <= allowed or warm < 50e-6:
        return None
    return Gate(
        "work-outside-timing",
        f"its untimed calls take {own:.1f}× as long as its timed ones (the reference's {theirs:.1f}×, "
        f"allowed {allowed:.1f}×)",
    )


def bimodal(times_s: Array) -> Gate | None:
    """Two groups of calls more than GAP apart, each a tenth of all at least: batching, or a bad machine."""
    ordered = np.sort(np.asarray(times_s, dtype=np.float64))
    least = max(2, len(ordered) // 10)
    if len(ordered) < 2 * least:
        return None
    ratios = ordered[least : len(ordered) - least + 1] / ordered[least - 1 : len(ordered) - least]
    if not len(ratios) or float(ratios.max()) <= GAP:
        return None
    at = least + int(np.argmax(ratios))
    return Gate(
        "bimodal",
        f"{at} of {len(ordered)} blocks took up to {ordered[at - 1] * 1e6:.1f} µs a call, the others at least "
        f"{ordered[at] * 1e6:.1f} µs",
    )


def flat_scaling(small_s: float, large_s: float, reference_small_s: float, reference_large_s: float) -> Gate | None:
    """Time must grow with the size where the reference's does. Seconds a call on a small and on the timed shape."""
    growth = large_s / max(small_s, 1e-9)
    theirs = reference_large_s / max(reference_small_s, 1e-9)
    if theirs < 8.0 or growth >= max(1.5, theirs / 16.0):
        return None
    if large_s < 20e-6:
        return None
    return Gate(
        "flat-scaling",
        f"takes {growth:.2f}× as long on the timed shape as on a small one ({small_s * 1e6:.1f} → {large_s * 1e6:.1f} "
        f"µs); the reference {theirs:.1f}×",
    )


def chain_disagreement(slope_s: float, overhead_s: float, noise_s: float, timed_s: float) -> Gate | None:
    """Seconds a call in a chain of dependent calls (less the cost of chaining) against the timed calls' seconds."""
    own = slope_s - overhead_s
    allowed = CHAIN_RATIO * timed_s + 3.0 * noise_s + CHAIN_S
    if own <= allowed:
        return None
    return Gate(
        "chain-disagreement",
        f"a dependent call takes {own * 1e6:.1f} µs ({slope_s * 1e6:.1f} less {overhead_s * 1e6:.1f} for the chain), "
        f"a timed one {timed_s * 1e6:.1f} µs (allowed {allowed * 1e6:.1f} µs)",
    )
