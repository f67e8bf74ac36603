"""bench mutations: faults put into honest kernels, and whether the referee's checks see them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from workbench.commands.common import Json, Trust, configuration
from workbench.errors import CommandFailed, EnvironmentProblem, UsageProblem, nearest
from workbench_engine.tasks.catalogue import bundled_names


def mutations(
    count: Annotated[int, typer.Option(min=1, help="Witnessed faults, spread over the tasks.")] = 300,
    seed: int = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Raw results; what it holds is not run again.")
    ] = None,
    tasks: Annotated[str, typer.Option(help="Bundled tasks, comma separated (default: all).")] = "",
    again: Annotated[bool, typer.Option("--again", help="Try once more what was not caught.")] = False,
    trust: Trust = None,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The tables as Markdown.")] = False,
) -> None:
    """Put faults into honest kernels and ask the referee's checks, without timing, whether they are right."""
    from workbench.benching.mutating import results as store
    from workbench.benching.mutating.running import quotas, run_task
    from workbench.benching.tables import markdown_table, text_table
    from workbench_engine.backends.cpu import CompilerMissing
    from workbench_engine.referee.worker_process import WorkerFailed
    from workbench_engine.sandbox.level import SandboxUnavailable, probe
    from workbench_engine.tasks.contract import TaskRejected

    names = _names(tasks)
    resolved, _ = configuration({"run.trust": trust})
    try:
        level = probe(resolved.config.run.trust)
    except SandboxUnavailable as error:
        raise EnvironmentProblem(str(error)) from None
    found = store.load(output, seed)
    cores = sorted(os.sched_getaffinity(0))

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def keep(results: store.Results) -> None:
        if output is None:
            return
        try:
            store.save(output, results)
        except OSError as error:
            raise EnvironmentProblem(f"{output}: cannot be written ({error.strerror or error})") from error

    for name, quota in quotas(names, count).items():
        try:
            found = run_task(name, quota, found, level, cores, again, say, keep)
        except (TaskRejected, WorkerFailed) as error:
            say(f"{name}: {error}")
            continue
        except CompilerMissing as error:
            raise EnvironmentProblem(str(error)) from None
        here = store.row(name, [t for t in found.tried if t.task == name])
        say(f"{name}: {here.caught} of {here.faults} faults caught, {here.equivalent} mutants equivalent")
    tried = [t for t in found.tried if t.task in names]
    if not any(t.counts for t in tried):
        raise CommandFailed("no fault was witnessed; run with other tasks or a larger --count")
    if json:
        body = {
            "seed": seed,
            "all": store.row("all", tried),
            "faults": store.rows(tried, "fault"),
            "tasks": store.rows(tried, "task"),
            "survivors": [t for t in tried if t.fate == "survived"],
        }
        print(msgspec.json.format(msgspec.json.encode(body).decode(), indent=2))
        return
    table = markdown_table if markdown else text_table
    for by in ("fault", "task"):
        print(table([by, *store.COLUMNS[1:]], [store.cells(one) for one in store.rows(tried, by)]))
        print()
    for one in tried:
        if one.fate == "survived":
            print(f"survived: {one.task} {one.origin} line {one.line}: {one.fault}: {one.note}\n{one.diff}")
            print(f"  witness {one.witness}\n")


def _names(given: str) -> list[str]:
    known = bundled_names()
    names = [one.strip() for one in given.split(",") if one.strip()]
    for name in names:
        if name not in known:
            raise UsageProblem(f"--tasks: no bundled task {name!r}; {nearest(name, known)}")
    return names or list(known)
