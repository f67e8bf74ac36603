"""collect: examples to train on, out of models, refereed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.commands.common import Trust, configuration
from workbench.config import Config
from workbench.errors import EnvironmentProblem, UsageProblem
from workbench.places import Places

if TYPE_CHECKING:
    from workbench.collecting.attempts import Attempt, Goal
    from workbench.collecting.journal import Journal
    from workbench.collecting.running import Answering
    from workbench.judging import TaskText


def collect(
    tasks: Annotated[
        list[str] | None, typer.Argument(help="Bundled tasks or task files (default: all bundled).")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the data set.")] = Path("out/collect"),
    tries: Annotated[int, typer.Option(min=1, help="At most so many answers a task and model.")] = 20,
    successes: Annotated[int, typer.Option(min=1, help="Enough correct ones a task and model.")] = 2,
    model: Annotated[str | None, typer.Option(help="The model, when no [llm.endpoints] are configured.")] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Its server.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve --model with vLLM, as `[vllm]` says.")] = False,
    answers: Annotated[str | None, typer.Option(help="What a model gives: code, or points.")] = None,
    profile: Annotated[str, typer.Option(help="search: quicker; final: as a winner is confirmed.")] = "search",
    case: Annotated[str, typer.Option(help="Which timed shapes of the tasks.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of the requests.")] = 0,
    tokens: Annotated[int | None, typer.Option(min=0, help="Hard cap in tokens; 0 = none.")] = None,
    money: Annotated[float | None, typer.Option(min=0, help="Hard cap in money; 0 = none.")] = None,
    trust: Trust = None,
) -> None:
    """Ask every model for solutions of every task and keep those that are executable and correct.

    Can be cut off and called again: nothing is asked or judged twice. FOLDER/sft.jsonl is the data set.
    """
    from workbench.collecting.attempts import Goal
    from workbench.collecting.journal import Journal
    from workbench.judging import read_task
    from workbench_engine.tasks.catalogue import bundled_names

    if profile not in ("search", "final"):
        raise UsageProblem(f"--profile {profile!r} is unknown; known: search, final")
    resolved, where = configuration(
        {
            "llm.model": model,
            "llm.base_url": base_url,
            "llm.answers": answers,
            "llm.tokens": tokens,
            "llm.money": money,
            "run.trust": trust,
        }
    )
    config = resolved.config
    opened = [read_task(one) for one in tasks or bundled_names()]
    about = {
        "answers": config.llm.answers,
        "kind": config.llm.kind,
        "temperature": config.llm.temperature,
        "profile": profile,
        "case": case,
        "seed": seed,
    }
    with Journal(output, about) as journal:
        try:
            away = asyncio.run(
                _collect(journal, opened, config, where, Goal(tries, successes), serve, seed, profile, case)
            )
        finally:
            _save(journal)
    if away:
        raise EnvironmentProblem(f"not finished: {', '.join(sorted(away))} could not be asked; call again to go on")


async def _collect(
    journal: Journal,
    tasks: list[TaskText],
    config: Config,
    where: Places,
    goal: Goal,
    serve: bool,
    seed: int,
    profile: str,
    case: str,
) -> set[str]:
    from workbench.collecting.running import Collector
    from workbench.commands.judging import builds
    from workbench.judging import Judge
    from workbench_engine.llm.errors import CapReached

    cache = builds(where)

    def note(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def judge(task: TaskText) -> Judge:
        return Judge(task, cache, case=case, trust=config.run.trust)

    async with _models(config, journal, serve) as models:
        collector = Collector(
            journal, models, config.llm, goal, seed=seed, profile=profile, case=case, say=_line, note=note
        )
        try:
            for task in tasks:
                await collector.collect(task, judge)
        except CapReached as cap:
            note(str(cap))
        except ValueError as error:
            raise UsageProblem(str(error)) from None
        return collector.away


@asynccontextmanager
async def _models(config: Config, journal: Journal, serve: bool) -> AsyncIterator[dict[str, Answering]]:
    """All configured models by name, behind one meter."""
    from workbench_engine.llm.client import OpenAIModel
    from workbench_engine.llm.errors import ModelError
    from workbench_engine.llm.meter import Caps, Meter
    from workbench_engine.llm.settings import endpoints_of

    llm = config.llm
    meter = Meter(Caps(money=llm.money or None, tokens=llm.tokens or None, requests=llm.requests or None))
    models: dict[str, Answering] = {}
    try:
        if serve:
            from workbench.asking import with_server
            from workbench_engine.llm.vllm_server import VllmModel, VllmServer
            from workbench_engine.llm.vllm_settings import served_name

            llm = with_server(llm, config.vllm)
            log = journal.folder / "vllm.log"
            server = VllmServer(
                config.vllm, llm, log, lambda state: print(f"vllm {state.state}: {state.text}", file=sys.stderr)
            )
            models[served_name(llm.model)] = VllmModel(server, meter)
        else:
            for endpoint in endpoints_of(llm):
                models[endpoint.label] = OpenAIModel(endpoint, meter)
    except (ValueError, ModelError) as error:
        raise UsageProblem(str(error)) from None
    try:
        yield models
    finally:
        for one in models.values():
            await one.aclose()


def _line(one: Attempt) -> None:
    speedup = f" {one.speedup:.2f}x" if one.speedup is not None else ""
    why = one.problem or one.reason
    said = f"{one.verdict or 'NOTHING'}{speedup}{f'  {why}' if why else ''}"
    print(f"{one.task}  {one.model}  {one.number}: {said}"[:200], flush=True)


def _save(journal: Journal) -> None:
    from workbench.collecting.journal import EXAMPLES
    from workbench_engine.host import host_card

    card = host_card()
    machine = {"cpu": card.cpu, "os": card.os, "torch": card.torch, "compiler": card.compiler}
    count, table = journal.save(machine)
    place = f"{journal.folder / EXAMPLES}{' and .parquet' if table else ''}"
    print(f"{count} examples of {len(journal.attempts)} answers: {place}", file=sys.stderr)
