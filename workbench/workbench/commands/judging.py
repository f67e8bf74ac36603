"""evaluate: one candidate through the whole referee."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from workbench.commands.common import Json, Trust, configuration
from workbench.commands.control import kind_of_file, read_candidate
from workbench.display.words import ratio, seconds
from workbench.places import Places, private_folder
from workbench_engine.exits import ExitCode
from workbench_sessions.events import VerdictReached

CORRECT = ("FASTER", "SAME", "SLOWER", "AMBIGUOUS")


def evaluate(
    task: Annotated[str, typer.Argument(help="A bundled task's name or a task file.")],
    candidate: Annotated[Path, typer.Argument(help="A kernel (.cpp) or a module with ModelNew (.py).")],
    case: Annotated[str, typer.Option(help="Which timed shapes of the task.")] = "",
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Judge one file against a task: is it right, is it faster, is it honest. Exit status 0 when it is correct."""
    from workbench.judging import Judge, Judged, badges, read_task, story

    kind, text = kind_of_file(candidate), read_candidate(candidate)
    resolved, where = configuration({"run.trust": trust})
    opened = read_task(task)

    async def judge() -> Judged:
        cache = builds(where)
        async with Judge(opened, cache, case=case, trust=resolved.config.run.trust) as judges:
            return await judges.judge(text, kind)

    judged = asyncio.run(judge())
    if json:
        print(msgspec.json.format(msgspec.json.encode(judged).decode(), indent=2))
    else:
        print(verdict_line(judged.verdict))
        for line in story(judged):
            print(line)
        for line in badges(judged):
            typer.secho(f"source {line}", dim=True)
    raise typer.Exit(ExitCode.OK if judged.verdict.verdict in CORRECT else ExitCode.FAILED)


def builds(where: Places) -> Path:
    """The build cache that all runs of this user share."""
    return private_folder(where.builds)


def verdict_line(v: VerdictReached) -> str:
    """The verdict in one line."""
    said: str = v.verdict
    if v.speedup is not None:
        said += f" {ratio(v.speedup)}"
        if v.lower is not None and v.upper is not None:
            said += f" [{v.lower:.2f} {v.upper:.2f}]"
        said += f"  {seconds(v.reference_s)} → {seconds(v.candidate_s)}  {v.pairs} pairs"
    if v.threads_speedup is not None:
        said += f"  all cores {ratio(v.threads_speedup)}"
    if v.sandbox_level:
        said += f"  sandbox {v.sandbox_level}"
    return f"{said}  {v.reason}".rstrip()
