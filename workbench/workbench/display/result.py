"""What a run ends with, on stdout: a table for people or one JSON object for programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from workbench.display.words import asked, interval, leaders, seconds, tally
from workbench_engine.exits import ExitCode
from workbench_sessions.projection import Candidate, Projection


def outcome_code(p: Projection) -> ExitCode:
    """The exit status that a session's end stands for."""
    if p.best is not None:
        return ExitCode.OK
    if p.header.outcome == "budget":
        return ExitCode.BUDGET
    return ExitCode.OK if not p.header.closed else ExitCode.FAILED


def result_of(p: Projection, path: Path) -> dict[str, Any]:
    """The result as plain values. Durations in seconds, speedups as ratios."""
    header = p.header
    return {
        "session": str(path),
        "task": header.task.name if header.task else "",
        "policy": header.policy,
        "sandbox": header.sandbox_level,
        "phase": header.phase,
        "outcome": header.outcome,
        "reason": header.phase_reason,
        "evaluations": p.evaluations,
        "seconds": p.spent_seconds,
        "prompts": p.prompts,
        "tokens": p.spent_tokens,
        "money": p.spent_money,
        "verdicts": msgspec.to_builtins(p.counts),
        "best": _row(p.candidates[p.best]) if p.best in p.candidates else None,
        "leaders": [_row(row) for row in leaders(p)],
    }


def print_result(p: Projection, path: Path, as_json: bool) -> None:
    """Writes the result to stdout."""
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(result_of(p, path)).decode(), indent=2))
        return
    header = p.header
    task = header.task
    dims = " ".join(f"{k}={v}" for k, v in task.dims.items()) if task else ""
    print(f"{task.name if task else header.name} ({dims or 'own shapes'}), {header.policy}, {header.sandbox_level}")
    print(f"{p.evaluations} evaluations in {p.spent_seconds:.0f} s: {tally(p.counts)}")
    if p.prompts:
        print(f"{p.prompts} prompts, {asked(p)}")
    rows = leaders(p)
    if not rows:
        print(f"nothing faster than the reference{': ' + header.phase_reason if header.phase_reason else ''}")
    else:
        _print_table(rows)
    print(f"session {path}")


def _print_table(rows: list[Candidate]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("candidate", "speedup", "reference", "candidate time", "pairs", "confirmed", "decision"):
        table.add_column(name, no_wrap=True)
    for row in rows:
        confirmed = "yes" if row.confirmed else "no"
        cells = (row.id, interval(row), seconds(row.reference_s), seconds(row.candidate_s), str(row.pairs), confirmed)
        table.add_row(*cells, row.decision or "")
    Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 120).print(table)


def _row(row: Candidate) -> dict[str, Any]:
    names = ("id", "verdict", "speedup", "lower", "upper", "pairs", "reference_s", "candidate_s", "confirmed")
    return {**{name: getattr(row, name) for name in names}, "sha256": row.source_sha256, "accepted": row.accepted_path}
