"""bench aa: how often is the reference called faster than itself, and how often does the interval hold the truth."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import msgspec
import typer

from workbench.commands.common import Json, Trust, configuration
from workbench.errors import EnvironmentProblem, UsageProblem


def aa(
    task: Annotated[str, typer.Argument(help="A bundled task's name or a task file.")] = "softmax_rows",
    runs: Annotated[int, typer.Option(min=1, help="How many candidates.")] = 200,
    profile: Annotated[str, typer.Option(help="search, or final: as a winner is confirmed.")] = "search",
    load: Annotated[int, typer.Option(min=0, help="Busy processes beside it, on all cores.")] = 0,
    contrast: Annotated[bool, typer.Option(help="Also time one side after the other, as the contrast.")] = True,
    trust: Trust = None,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")] = False,
) -> None:
    """Judge a candidate that is the reference itself, again and again: how often is it called FASTER or SLOWER?"""
    from workbench.benching import against_itself as bench
    from workbench.benching.tables import markdown_table, text_table
    from workbench.judging import read_task
    from workbench_engine.referee.worker_process import WorkerFailed
    from workbench_engine.sandbox.level import SandboxUnavailable, probe
    from workbench_engine.tasks.contract import TaskRejected

    if profile not in ("search", "final"):
        raise UsageProblem(f"--profile {profile!r} is unknown; known: search, final")
    resolved, _ = configuration({"run.trust": trust})
    opened = read_task(task)
    cores = sorted(os.sched_getaffinity(0))
    try:
        level = probe(resolved.config.run.trust)
        with bench.load(load, cores):
            against = bench.Against(opened, level, cores, profile)
            try:
                delta = against.delta
                before = os.getloadavg()[0]
                done = bench.measure(against, runs, contrast, lambda text: print(text, file=sys.stderr, flush=True))
                average = (before + os.getloadavg()[0]) / 2
            finally:
                against.close()
    except TaskRejected as error:
        raise UsageProblem(str(error)) from None
    except (SandboxUnavailable, WorkerFailed) as error:
        raise EnvironmentProblem(str(error)) from None
    methods = [bench.method("pairs (the referee)", [run.paired for run in done])]
    if contrast:
        others = [run.sequential for run in done if run.sequential is not None]
        methods.append(bench.method("one side after the other", others))
    if json:
        body = {
            "task": task,
            "profile": profile,
            "runs": runs,
            "load": load,
            "load_average": average,
            "delta": delta,
            "methods": methods,
            "raw": done,
        }
        print(msgspec.json.format(msgspec.json.encode(body).decode(), indent=2))
        return
    print(
        f"{runs} runs of the reference against itself on {task} ({profile}), {load} busy processes beside it "
        f"(load average {average:.1f} on {len(cores)} cores), A/A floor ±{delta:.2%}"
    )
    print((markdown_table if markdown else text_table)(bench.COLUMNS, [bench.cells(one) for one in methods]))
