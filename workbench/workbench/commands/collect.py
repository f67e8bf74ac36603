"""collect: examples to train on, out of models, refereed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.commands.common import Trust, configuration
from workbench.errors import CommandFailed, EnvironmentProblem, UsageProblem
from workbench_engine.exits import ExitCode

if TYPE_CHECKING:
    from workbench.collecting.attempts import Attempt
    from workbench.collecting.journal import Journal
    from workbench.collecting.remembering import Answering
    from workbench.collecting.running import Collector
    from workbench.judging import Judge, TaskText


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
    case: Annotated[str | None, typer.Option(help="Which timed shapes of the tasks.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the requests (default: 0).")] = None,
    tokens: Annotated[int | None, typer.Option(min=0, help="Hard cap in tokens; 0 = none.")] = None,
    money: Annotated[float | None, typer.Option(min=0, help="Hard cap in money; 0 = none.")] = None,
    recorded: Annotated[
        Path | None, typer.Option("--recorded", help="Judge the answers of this earlier collection; ask no model.")
    ] = None,
    trust: Trust = None,
) -> None:
    """Ask every model for solutions of every task and keep those that are executable and correct.

    Can be cut off and called again: nothing is asked or judged twice. FOLDER/sft.jsonl is the data set.
    """
    from workbench.collecting.attempts import Goal
    from workbench.collecting.journal import Journal, read_about
    from workbench.collecting.models import asked, sampled
    from workbench.collecting.models import recorded as answering
    from workbench.collecting.running import Collector, Manner
    from workbench.commands.judging import builds
    from workbench.judging import Judge
    from workbench_engine.host import host_card

    if profile not in ("search", "final"):
        raise UsageProblem(f"--profile {profile!r} is unknown; known: search, final")
    theirs: dict[str, Any] = {}
    if recorded is not None:
        given: dict[str, Any] = {
            "--model": model,
            "--base-url": base_url,
            "--serve": serve or None,
            "--answers": answers,
        }
        given |= {"--case": case, "--seed": seed, "--tokens": tokens, "--money": money}
        said = ", ".join(name for name, value in given.items() if value is not None)
        if said:
            raise UsageProblem(f"--recorded goes by the settings of {recorded}; leave out {said}")
        theirs = read_about(recorded)
    resolved, where = configuration(
        {
            "llm.model": model,
            "llm.base_url": base_url,
            "llm.answers": theirs.get("answers", answers),
            "llm.kind": theirs.get("kind"),
            "llm.tokens": tokens,
            "llm.money": money,
            "run.trust": trust,
        }
    )
    config = resolved.config
    manner = Manner(config.llm, theirs.get("seed", seed or 0), profile, theirs.get("case", case or ""))
    opened = read_tasks(tasks, recorded)
    about = {
        "answers": config.llm.answers,
        "kind": config.llm.kind,
        "profile": profile,
        "case": manner.case,
        "seed": manner.seed,
    }
    if recorded is not None:
        about["recorded"] = recorded.resolve().name
    names = theirs["models"] if recorded is not None else sampled(config, serve)
    with Journal(output, about, names) as journal:
        for name, task in opened.items():
            journal.agree_on(name, task.source)
        models = answering(recorded) if recorded is not None else asked(config, output, names, serve, note)
        cache, card = builds(where), host_card()
        machine = {"cpu": card.cpu, "os": card.os, "torch": card.torch, "compiler": card.compiler}

        def collector(open_models: dict[str, Answering]) -> Collector:
            goal = Goal(tries, successes)
            return Collector(journal, open_models, manner, goal, machine=machine, say=line, note=note)

        def judges(task: TaskText) -> Judge:
            return Judge(task, cache, case=manner.case, trust=config.run.trust)

        try:
            problem = asyncio.run(collected(list(opened.values()), models, collector, judges))
        finally:
            save(journal)
    if problem is not None:
        raise problem


def read_tasks(named: Sequence[str] | None, recorded: Path | None) -> dict[str, TaskText]:
    """The tasks by the name they have in the data set. Raises UsageProblem."""
    from workbench.collecting.running import task_name
    from workbench.judging import read_task
    from workbench_engine.tasks.catalogue import bundled_names

    found: dict[str, TaskText] = {}
    for one in named or (bundled_names() if recorded is None else tasks_of(recorded)):
        task = read_task(one)
        name = task_name(task.path)
        if name in found and found[name].path != task.path:
            raise UsageProblem(f"two tasks have the name {name}: {found[name].path} and {task.path}; rename one")
        found[name] = task
    return found


def tasks_of(folder: Path) -> list[str]:
    """The tasks that a collection asked for. Raises UsageProblem when one can't be found by its name."""
    from workbench.collecting.journal import ATTEMPTS, whole_lines
    from workbench_engine.tasks.catalogue import bundled_names

    names = list(dict.fromkeys(one.task for one in whole_lines(folder / ATTEMPTS)))
    strange = [name for name in names if name not in bundled_names()]
    if strange:
        raise UsageProblem(f"{folder}: asked for {', '.join(strange)}, which no bundled task is called; name the files")
    if not names:
        raise UsageProblem(f"{folder}: holds no answers")
    return names


async def collected(
    tasks: Sequence[TaskText],
    models: AbstractAsyncContextManager[dict[str, Answering]],
    collector: Callable[[dict[str, Answering]], Collector],
    judge: Callable[[TaskText], Judge],
) -> CommandFailed | None:
    """All tasks in turn; what kept it from being complete. Raises CommandFailed."""
    from workbench_engine.llm.errors import CapReached

    async with models as opened:
        collects = collector(opened)
        try:
            for task in tasks:
                await collects.collect(task, judge)
        except CapReached as cap:
            return CommandFailed(f"not finished: {cap}; raise the cap and call again to go on", ExitCode.BUDGET)
        except ValueError as error:
            raise UsageProblem(str(error)) from None
    if collects.unasked:
        names = ", ".join(sorted(collects.unasked))
        return EnvironmentProblem(f"not finished: {names} could not be asked; call again to go on")
    if collects.refused:
        return UsageProblem(f"without the tasks that cannot be used: {', '.join(sorted(collects.refused))}")
    return None


def note(text: str) -> None:
    """A remark for the person, beside the attempts."""
    print(text, file=sys.stderr, flush=True)


def line(one: Attempt) -> None:
    """One attempt in one line."""
    speedup = f" {one.speedup:.2f}x" if one.speedup is not None else ""
    why = " ".join((one.problem or one.reason).split())
    again = f"  as {one.repeats}" if one.repeats else ""
    said = f"{one.verdict or 'NOTHING'}{speedup}{again}{f'  {why}' if why else ''}"
    print(f"{one.task}  {one.model}  {one.number}: {said}"[:200], flush=True)


def save(journal: Journal) -> None:
    """Writes the data set and says what it holds."""
    from workbench.collecting.journal import EXAMPLES

    count, table = journal.save()
    done = journal.attempts
    tokens = sum(one.tokens_in + one.tokens_out for one in done)
    paid = [one.cost for one in done if one.cost is not None]
    money = f", {sum(paid):.4f} paid" if paid else ""
    place = f"{journal.folder / EXAMPLES}{' and .parquet' if table else ' (no .parquet: pyarrow is not installed)'}"
    note(f"{count} examples of {len(done)} answers, {tokens} tokens{money}: {place}")
