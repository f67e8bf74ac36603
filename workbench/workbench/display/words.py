"""Numbers and lines as people read them; pure."""

from __future__ import annotations

from collections.abc import Iterable

from workbench_sessions.projection import Candidate, Counts, Projection


def seconds(value_s: float | None) -> str:
    """ "4.66 ms": three significant digits in a fitting unit."""
    if value_s is None:
        return "—"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(value_s) * factor >= 1.0 or unit == "µs":
            return f"{_three(value_s * factor)} {unit}"
    raise AssertionError


def ratio(value: float | None) -> str:
    return "—" if value is None else f"{_three(value)}×"


def interval(row: Candidate) -> str:
    """ "1.84× [1.81 1.87]", "—" for what was not timed."""
    if row.speedup is None:
        return "—"
    if row.lower is None or row.upper is None:
        return ratio(row.speedup)
    return f"{ratio(row.speedup)} [{_three(row.lower)} {_three(row.upper)}]"


def tally(counts: Counts) -> str:
    """ "12 FASTER, 3 WRONG": the verdicts that occurred."""
    names = ("faster", "same", "slower", "ambiguous", "wrong", "failed", "cheating")
    said = [f"{getattr(counts, name)} {name.upper()}" for name in names if getattr(counts, name)]
    return ", ".join(said) or "no verdict yet"


def candidate_line(row: Candidate, best: bool) -> str:
    """One judged candidate in one line."""
    mark = "★" if best else " "
    confirmed = " confirmed" if row.confirmed else ""
    said = f"{mark} {row.id}  gen {row.generation}  {row.origin.policy}  {row.verdict}  {interval(row)}{confirmed}"
    reason = row.reason.splitlines()[0] if row.reason else ""
    return f"{said}  {reason}".rstrip() if row.verdict in ("WRONG", "FAILED", "CHEATING") else said


def progress(p: Projection) -> str:
    """The state of a run in one line."""
    budget = p.header.budget
    spent = f"{p.evaluations}" + (f"/{budget.evaluations}" if budget.evaluations is not None else "")
    clock = f"{p.spent_seconds:.0f}" + (f"/{budget.seconds:.0f}" if budget.seconds is not None else "")
    best = p.candidates.get(p.best) if p.best else None
    found = f"best {interval(best)} {best.id}" if best is not None else "nothing faster yet"
    models = f"  {asked(p)}" if p.prompts else ""
    return f"{p.header.phase}  {spent} evaluations  {clock} s{models}  {found}  ({tally(p.counts)})"


def asked(p: Projection) -> str:
    """ "104500/200000 tokens, 0.52 paid": what asking models has cost."""
    budget = p.header.budget
    tokens = f"{p.spent_tokens}" + (f"/{budget.tokens}" if budget.tokens is not None else "") + " tokens"
    if not p.spent_money and budget.money is None:
        return tokens
    return f"{tokens}, {p.spent_money:.2f}" + (f"/{budget.money:.2f}" if budget.money is not None else "") + " paid"


def leaders(p: Projection, count: int = 10) -> list[Candidate]:
    """The fastest candidates that the referee called FASTER, the best first."""
    rows: Iterable[Candidate] = (r for r in p.candidates.values() if r.verdict == "FASTER" and r.speedup is not None)
    kept = [r for r in rows if r.decision != "rejected"]
    return sorted(kept, key=lambda r: (r.id != p.best, -(r.speedup or 0.0)))[:count]


def _three(value: float) -> str:
    """Three significant digits without an exponent."""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    if value and abs(value) < 0.1:
        digits = 4
    return f"{value:.{digits}f}"
