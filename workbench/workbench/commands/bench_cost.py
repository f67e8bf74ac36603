"""bench cost: what one verdict costs, and where its time goes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from workbench.commands.common import Json, Trust, configuration
from workbench.errors import CommandFailed, UsageProblem


def cost(
    task: Annotated[str, typer.Argument(help="A bundled task's name or a task file.")] = "rmsnorm",
    candidate: Annotated[
        Path | None, typer.Argument(help="A kernel (.cpp) or a module (.py); default: the task's naive kernel.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Verdicts of each kind; medians are shown.")] = 5,
    trust: Trust = None,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")] = False,
) -> None:
    """Time one verdict from submission to its end, as in the search and as a winner is confirmed."""
    from workbench.benching import costing
    from workbench.benching.tables import markdown_table, text_table
    from workbench.display.words import seconds

    resolved, _ = configuration({"run.trust": trust})
    kind, text = _candidate(task, candidate)
    profiles = ("search", "final")
    try:
        found = asyncio.run(costing.measure(task, text, kind, profiles, repeat, resolved.config.run.trust))
    except ValueError as error:
        raise CommandFailed(str(error)) from None
    if json:
        print(msgspec.json.format(msgspec.json.encode({"task": task, "repeat": repeat, "costs": found}).decode()))
        return
    shown = ", ".join(seconds(one.candidate_s) for one in found if one.candidate_s is not None)
    print(f"{task}: a {kind} of {shown} a call; medians of {repeat} verdicts, each built anew")
    table = markdown_table if markdown else text_table
    print(table(["part", *profiles], costing.rows(found)))
    for one in found:
        held = "within" if one.wall_s <= costing.TARGET_S else "above"
        print(f"{one.profile}: {one.wall_s:.2f} s, {held} the target of {costing.TARGET_S:g} s")


def _candidate(task: str, candidate: Path | None) -> tuple[str, str]:
    if candidate is not None:
        from workbench.commands.control import kind_of_file, read_candidate

        return kind_of_file(candidate), read_candidate(candidate)
    from workbench_engine.tasks.catalogue import bundled_names, bundled_space

    space = bundled_space(task) if task in bundled_names() else None
    if space is None:
        raise UsageProblem(f"{task}: has no design space to take a kernel from; give a candidate's file")
    return "kernel", space.render(space.naive).text()
