"""bench tasks | policies | aa | referee: what the workbench achieves on this machine, measured by its own referee."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace

from workbench.commands.bench_aa import aa
from workbench.commands.bench_cost import cost
from workbench.commands.bench_judge import judge
from workbench.commands.bench_kernelbench import kernelbench
from workbench.commands.bench_mutations import mutations
from workbench.commands.bench_referee import referee
from workbench.commands.common import Json, Trust, configuration
from workbench.config import RunConfig
from workbench.errors import CommandFailed, EnvironmentProblem, UsageProblem, nearest
from workbench.places import places
from workbench_engine.policies.registry import POLICY_NAMES
from workbench_engine.settings import RunSettings
from workbench_engine.tasks.catalogue import bundled_names, bundled_space

app = typer.Typer(no_args_is_help=True, help="Measure what the workbench achieves here.")
Tasks = Annotated[str, typer.Option(help="Bundled tasks, comma separated (default: all with a design space).")]
Markdown = Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")]

app.command()(referee)
app.command()(judge)
app.command()(mutations)
app.command()(aa)
app.command()(cost)
app.command()(kernelbench)


@app.command()
def tasks(
    policy: Annotated[str, typer.Option(help="Who proposes.")] = "design-space",
    minutes: Annotated[float, typer.Option(min=0, help="Budget a task.")] = 3.0,
    evaluations: Annotated[int, typer.Option(min=0, help="Budget a task; 0 = no limit.")] = 0,
    tasks: Tasks = "",
    seed: int = 0,
    keep: Annotated[Path | None, typer.Option(help="Folder that keeps the sessions.")] = None,
    trust: Trust = None,
    json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Optimise bundled tasks one after the other and print what was found."""
    from workbench.benching.claiming import Claim, sentences
    from workbench.benching.runs import Finished, run_once
    from workbench.benching.tables import TASK_COLUMNS, markdown_table, task_cells, text_table

    base = _base(policy, seed, evaluations, minutes, trust)
    done: list[Finished] = []
    for name in chosen(tasks):
        try:
            done.append(run_once(_request(name, base), keep))
        except CommandFailed as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        print(text_table(TASK_COLUMNS, [task_cells(done[-1])]).splitlines()[1], file=sys.stderr, flush=True)
    if not done:
        raise CommandFailed("no task could be run")
    if json:
        print(msgspec.json.format(msgspec.json.encode(done).decode(), indent=2))
    else:
        print((markdown_table if markdown else text_table)(TASK_COLUMNS, [task_cells(one) for one in done]))
        for line in sentences({one.task: one.claim or Claim() for one in done}):
            print(line, file=sys.stderr)


@app.command()
def policies(
    policies: Annotated[str, typer.Option(help="Comma separated; the first is compared with the others.")] = (
        "design-space,random,best-of-n"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each policy on each task.")] = 5,
    evaluations: Annotated[int, typer.Option(min=1, help="Budget of each run.")] = 64,
    tasks: Tasks = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="Raw results; what it holds is not run again.")] = Path(
        "out/policies.json"
    ),
    plot: Annotated[Path | None, typer.Option(help="Curves to this PNG or SVG.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at once, each on two cores of its own.")] = 1,
    trust: Trust = None,
    json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Compare policies at equal evaluations. Can be cut off and called again: finished runs are kept."""
    from workbench.benching import store
    from workbench.benching.comparing import cells, compare
    from workbench.benching.plotting import plot_policies
    from workbench.benching.runs import run_many
    from workbench.benching.tables import markdown_table, text_table

    names, picked = _policies(policies), chosen(tasks)
    results = store.load(output, evaluations)
    have = {(run.task, run.policy, run.seed) for run in results.runs}
    # Seeds outermost and policies innermost: a drift of the machine meets all policies alike.
    wanted = [(task, policy, seed) for seed in range(seeds) for task in picked for policy in names]
    todo = [one for one in wanted if one not in have]
    requests = []
    for task, policy, seed in todo:
        # Confirmation decides what is called best in a run; here every evaluation counts the same.
        base = replace(_base(policy, seed, evaluations, 0.0, trust), confirm=False)
        requests.append(_request(task, base))
    for number, (request, run) in enumerate(run_many(requests, jobs), 1):
        task, policy, seed = request.task, request.policy, request.seed
        if isinstance(run, CommandFailed):
            print(f"{task} {policy} seed {seed}: {run}", file=sys.stderr)
            continue
        results = store.Results(evaluations, [*results.runs, run])
        try:
            store.save(output, results)
        except OSError as error:
            raise EnvironmentProblem(f"{output}: cannot be written ({error.strerror or error})") from error
        said = f"{number}/{len(todo)} {task} {policy} seed {seed}: {run.best or 1.0:.2f}× in {run.seconds:.0f} s"
        print(said, file=sys.stderr, flush=True)
    runs = [run for run in results.runs if (run.task, run.policy, run.seed) in set(wanted)]
    if not runs:
        raise CommandFailed("no run finished")
    found = cells(runs, evaluations)
    compared = []
    for other in names[1:]:
        try:
            compared.append(compare(found, names[0], other))
        except ValueError as error:
            print(error, file=sys.stderr)
    if plot is not None:
        plot_policies(runs, evaluations, plot)
    if json:
        body = {"evaluations": evaluations, "cells": found, "comparisons": compared}
        print(msgspec.json.format(msgspec.json.encode(body).decode(), indent=2))
        return
    medians = {(cell.task, cell.policy): cell for cell in found}
    rows = [
        [
            task,
            *(
                f"{medians[task, p].median:.3f}× (n={len(medians[task, p].best)})" if (task, p) in medians else "—"
                for p in names
            ),
        ]
        for task in picked
    ]
    print((markdown_table if markdown else text_table)(["task", *names], rows))
    for one in compared:
        print(
            f"{one.policy} against {one.against}: {one.wins} wins, {one.losses} losses, {one.ties} ties; "
            f"geometric mean of the ratio {one.geomean_ratio:.3f}; sign test p = {one.p:.3g}"
        )


def chosen(tasks: str) -> list[str]:
    """Names from a comma separated list; empty means all that have a design space. Raises UsageProblem."""
    known = bundled_names()
    names = [one.strip() for one in tasks.split(",") if one.strip()]
    for name in names:
        if name not in known:
            raise UsageProblem(f"--tasks: no bundled task {name!r}; {nearest(name, known)}")
    return names or [name for name in known if bundled_space(name) is not None]


def _policies(given: str) -> list[str]:
    names = [one.strip() for one in given.split(",") if one.strip()]
    for name in names:
        if name not in POLICY_NAMES:
            raise UsageProblem(f"--policies: no policy {name!r}; {nearest(name, POLICY_NAMES)}")
    if not names:
        raise UsageProblem(f"--policies: give at least one of {', '.join(POLICY_NAMES)}")
    return names


def _base(policy: str, seed: int, evaluations: int, minutes: float, trust: bool | None) -> RunConfig:
    flags = {
        "run.policy": _policies(policy)[0],
        "run.seed": seed,
        "run.evaluations": evaluations,
        "run.minutes": minutes,
        "run.trust": trust,
        # A bench never waits for a person.
        "run.mode": "auto",
    }
    return configuration(flags)[0].config.run


def _request(task: str, run: RunConfig) -> RunSettings:
    from workbench.commands.running import settings_of

    return settings_of(task, f"bench-{task}", run, places())
