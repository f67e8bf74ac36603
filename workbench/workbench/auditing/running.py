"""The audit itself: rows screened, the rest judged on one or more pairs of cores, each outcome kept as it comes."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Protocol

from workbench.auditing.journal import Journal
from workbench.auditing.refereeing import Care, Referee, outcome_of
from workbench.auditing.rows import Outcome, Row
from workbench.auditing.screening import Screened, finding, screen
from workbench.errors import EnvironmentProblem, UsageProblem

TRIES = 2
"""A row that was begun so often without an outcome ended the audit each time: it is left out."""

Begin = Callable[[Row], None]


class Teller(Protocol):
    """Hears what happens, for a person."""

    def begun(self, row: Row) -> None: ...

    def ended(self, outcome: Outcome) -> None: ...


def chosen(rows: Sequence[Row], only: str = "", limit: int = 0) -> list[Row]:
    """Rows that `only` names ("1", "2/17", "2/17#2", with * and ?), at most `limit` of them (0: no limit).

    Raises UsageProblem when nothing is left.
    """
    import fnmatch

    patterns = [p.strip() for p in only.split(",") if p.strip()]
    kept = []
    for row in rows:
        names = (row.level, f"{row.level}/{row.task}", row.key, f"{row.level}/{row.task}_{row.name}")
        if not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns for name in names):
            kept.append(row)
    if not kept:
        first, last = (rows[0].key, rows[-1].key) if rows else ("", "")
        raise UsageProblem(f"--only {only}: matches no row; rows are LEVEL/TASK, from {first} to {last}")
    return kept[:limit] if limit else kept


def core_pairs(jobs: int) -> list[tuple[int, ...]]:
    """The cores of each job: all of them for one, else two for each. Raises UsageProblem when there are too few."""
    cores = sorted(os.sched_getaffinity(0))
    if jobs == 1:
        return [tuple(cores)]
    if len(cores) < 2 * jobs:
        raise UsageProblem(f"--jobs {jobs}: needs {2 * jobs} cores, this process may use {len(cores)}")
    return [(cores[2 * i], cores[2 * i + 1]) for i in range(jobs)]


def check_machine(trust: bool, cache: Path) -> None:
    """Raises EnvironmentProblem where no row at all could be judged: no sandbox, no compiler."""
    from workbench_engine.backends.cpu import CompilerMissing, CpuBuilder
    from workbench_engine.sandbox.level import SandboxUnavailable, probe

    try:
        CpuBuilder(probe(trust), cache)
    except (SandboxUnavailable, CompilerMissing) as error:
        raise EnvironmentProblem(str(error)) from None


async def audit(
    rows: Sequence[Row],
    journal: Journal,
    care: Care,
    cache: Path,
    values: Mapping[str, int],
    teller: Teller,
    jobs: int = 1,
    retry: bool = False,
) -> None:
    """Brings every row to an outcome in the journal; those that have one are skipped (`retry`: if it is a judgement).

    Raises EnvironmentProblem when a row needs what this machine lacks.
    """
    done = journal.done(retry)
    waiting: list[tuple[Row, Screened]] = []
    for row in rows:
        if row.key in done:
            continue
        screened = screen(row, values)
        if not screened.state and journal.attempts(row.key) >= TRIES:
            reason = f"the audit itself ended {TRIES} times while this row was judged (out of memory?)"
            screened = Screened(
                "NOT REFEREED", reason, [*screened.findings, finding("not-refereed", reason)], "", "", screened.changed
            )
        if screened.state:
            outcome = outcome_of(row, screened)
            journal.add(outcome)
            teller.ended(outcome)
        else:
            waiting.append((row, screened))
    if waiting:
        check_machine(care.trust, cache)
    # Candidates of one task stay together, so that it is opened once.
    tasks = [list(group) for _, group in groupby(waiting, key=lambda one: one[1].reference)]
    tasks.reverse()
    allowed = os.sched_getaffinity(0)

    async def work(cores: tuple[int, ...]) -> None:
        referee = Referee(cache, care, cores)
        try:
            while tasks:
                for row, screened in tasks.pop():
                    journal.begin(row.key)
                    teller.begun(row)
                    outcome = await referee.judge(row, screened)
                    journal.add(outcome)
                    teller.ended(outcome)
        finally:
            await referee.close()

    try:
        async with asyncio.TaskGroup() as group:
            for cores in core_pairs(jobs):
                group.create_task(work(cores))
    except* EnvironmentProblem as problems:
        raise problems.exceptions[0] from None
    finally:
        os.sched_setaffinity(0, allowed)
        # Pipes of stations that a deadline cut off wait for the collector, and cannot be closed after the loop.
        gc.collect()
        await asyncio.sleep(0)
