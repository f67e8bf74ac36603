"""The winner's curse: the best of many noisy timings is mostly lucky, so a would-be best is measured again.

One rule serves the running search, the end of a run and a resumed one: whoever claims more than the best confirmed
candidate, highest claim first, is re-measured in a fresh process with fresh seeds. Nothing else is remembered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from workbench_sessions.projection import Candidate


def confirmed_best(rows: Iterable[Candidate]) -> float:
    """Speedup of the best confirmed FASTER candidate nobody rejected; 1.0, the reference, if there is none."""
    return max((s for row in rows if row.confirmed and (s := _claim(row)) is not None), default=1.0)


def next_to_confirm(rows: Collection[Candidate], skip: Collection[str] = ()) -> str | None:
    """Who must be re-measured next: the highest claim above the best confirmed one; of equals the earlier."""
    floor = confirmed_best(rows)
    claims = [
        (claim, -row.proposed_seq, row.id)
        for row in rows
        if not row.confirmed and row.id not in skip and (claim := _claim(row)) is not None and claim > floor
    ]
    return max(claims)[2] if claims else None


def promising_above(best: float | None, factor: float) -> float:
    """The ratio that a quick estimate must exceed to be worth a full measurement, at least 1."""
    return max(1.0, (best or 1.0) * factor)


def _claim(row: Candidate) -> float | None:
    return row.speedup if row.verdict == "FASTER" and row.decision != "rejected" else None
