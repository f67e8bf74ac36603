"""bench judge: how often the adversarial judge is right on exploits and controls."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from msgspec.structs import replace

from workbench.benching.trials import Trial, find_trials
from workbench.commands.common import Json, configuration
from workbench.errors import UsageProblem

if TYPE_CHECKING:
    from workbench_engine.referee.adversary.judge import Opinion


def judge(
    backend: Annotated[str, typer.Option(help="Whose files: cpu or cuda.")] = "cpu",
    only: Annotated[str, typer.Option(help="Names, parts of names or patterns, comma separated.")] = "",
    exploits: Annotated[Path, typer.Option(help="Folder of the cheats.")] = Path("tests/exploits"),
    controls: Annotated[Path, typer.Option(help="Folder of their honest twins.")] = Path("tests/controls"),
    threshold: Annotated[float | None, typer.Option(min=0, max=1, help="Likeness from which to warn.")] = None,
    llm: Annotated[bool, typer.Option("--llm", help="Also ask the model of [llm], once a file.")] = False,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")] = False,
) -> None:
    """Compare each file with all others, as the judge does, and count what it would have said of it."""
    from workbench.benching.opinions import COLUMNS, cells, confusions, look
    from workbench.benching.tables import markdown_table, text_table
    from workbench_engine.referee.adversary.judge import ALIKE

    trials = find_trials([exploits, controls], backend, only)
    looked = look(trials)
    if llm:
        opinions = asyncio.run(_ask(trials))
        looked = [replace(one, opinion=opinions.get(f"{one.role}s/{one.name}")) for one in looked]
    found = confusions(looked, ALIKE if threshold is None else threshold)
    if json:
        body = {"confusions": found, "files": looked}
        print(msgspec.json.format(msgspec.json.encode(body).decode(), indent=2))
        return
    print((markdown_table if markdown else text_table)(COLUMNS, [cells(one) for one in found]))


async def _ask(trials: list[Trial]) -> dict[str, Opinion]:
    """The model's opinion of every file, the three most alike others as its cases."""
    from workbench_engine.llm.contract import ask_with
    from workbench_engine.llm.errors import ModelError
    from workbench_engine.llm.making import make_model
    from workbench_engine.llm.meter import Meter
    from workbench_engine.referee.adversary.cases import Case
    from workbench_engine.referee.adversary.judge import Library, Suspect, opinion

    resolved, _ = configuration()
    try:
        model = make_model(resolved.config.llm, Meter())
    except (ValueError, ModelError) as error:
        raise UsageProblem(f"--llm: {error}") from None
    ask, gate = ask_with(model), asyncio.Semaphore(8)
    cases = {t.name: Case(t.sha256, t.kind, t.text, t.findings, t.title) for t in trials if t.role == "exploit"}
    opinions: dict[str, Opinion] = {}
    library = Library(list(cases.values()))

    async def one(trial: Trial) -> None:
        near = [a for a in library.alike(trial.text, trial.kind, 4) if a.case.sha256 != trial.sha256][:3]
        # What a file would claim is not known here: all are said to claim the same.
        suspect = Suspect(text=trial.text, kind=trial.kind, speedup=3.0, task=trial.task)
        async with gate:
            try:
                opinions[f"{trial.role}s/{trial.name}"] = await opinion(suspect, near, ask)
            except ModelError as error:
                print(f"{trial.name}: {error}", file=sys.stderr)

    try:
        await asyncio.gather(*(one(trial) for trial in trials))
    finally:
        await model.aclose()
    return opinions
