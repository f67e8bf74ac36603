"""bench kernelbench: a policy over the tasks of a KernelBench level."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from workbench.commands.common import Json, Trust, configuration
from workbench.errors import CommandFailed, UsageProblem

if TYPE_CHECKING:
    from workbench.config import Config
    from workbench.importing.scoring import Entry
    from workbench.places import Places

ABLE = ("llm", "vllm")
"""Policies that can propose for a task without a design space and need no person."""


def kernelbench(
    folder: Annotated[str, typer.Argument(help="A checkout, or the name of imported tasks.")] = "kernelbench",
    level: Annotated[int, typer.Option(min=0, help="One level; 0 = all.")] = 1,
    tasks: Annotated[str, typer.Option(help="Numbers or names, comma separated, * and ? too (default: all).")] = "",
    policy: Annotated[str, typer.Option(help="Who proposes: llm or vllm.")] = "llm",
    minutes: Annotated[float, typer.Option(min=0, help="Budget a task.")] = 3.0,
    evaluations: Annotated[int, typer.Option(min=0, help="Budget a task; 0 = no limit.")] = 0,
    seed: int = 0,
    model: Annotated[str | None, typer.Option(help="The model: a name, with vllm also a folder.")] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Its server.")] = None,
    key_env: Annotated[str | None, typer.Option("--key-env", help="The variable that holds its key.")] = None,
    recorded: Annotated[str | None, typer.Option("--recorded", help="Answer from this file instead.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Results (default: out/kernelbench-LEVEL.json).")
    ] = None,
    keep: Annotated[Path | None, typer.Option(help="Folder that keeps the sessions.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at once, each on two cores of its own.")] = 1,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what could not be run.")] = False,
    trust: Trust = None,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")] = False,
) -> None:
    """Run a policy over a level of KernelBench and sum up: geometric mean, fast_1, fast_1.2.

    Can be cut off and called again: finished runs are kept. Every task asked for counts, also one that cannot be run.
    """
    from workbench.benching.runs import run_many
    from workbench.benching.tables import markdown_table, text_table
    from workbench.importing import scoring

    if policy not in ABLE:
        raise UsageProblem(
            f"--policy {policy}: KernelBench tasks have no design space to sample; give {' or '.join(ABLE)}"
        )
    flags = {
        "run.policy": policy,
        "run.seed": seed,
        "run.evaluations": evaluations,
        "run.minutes": minutes,
        "run.trust": trust,
        "run.mode": "auto",
        "llm.model": model,
        "llm.base_url": base_url,
        "llm.key_env": key_env,
        "llm.replay": recorded,
    }
    resolved, where = configuration(flags)
    files = _files(folder, level, tasks, where)
    settings = {
        "level": str(level),
        "policy": policy,
        "model": resolved.config.llm.model,
        "minutes": f"{minutes:g}",
        "evaluations": str(evaluations),
        "seed": str(seed),
    }
    target = output or Path("out") / f"kernelbench-{level or 'all'}.json"
    results = scoring.load(target, settings)
    have = {e.key: e for e in results.entries}
    todo, requests = {}, []
    for entry, path in files:
        before = have.get(entry.key)
        if before is not None and before.sha256 == entry.sha256 and not (retry and before.run is None):
            continue
        if not path.is_file():
            results = results.with_entry(msgspec.structs.replace(entry, problem="its file was never kept"))
            continue
        request = _request(path, resolved.config, where)
        todo[request.path] = entry
        requests.append(request)
    if len(todo) < len(files):
        print(f"{len(files) - len(todo)} of {len(files)} tasks are done already", file=sys.stderr)
    for number, (request, run) in enumerate(run_many(requests, jobs, keep), 1):
        entry = todo[request.path]
        failed = isinstance(run, CommandFailed)
        entry = msgspec.structs.replace(entry, run=None if failed else run, problem=str(run) if failed else "")
        results = results.with_entry(entry)
        scoring.save(target, results)
        print(f"{number}/{len(todo)} {'  '.join(scoring.cells(entry))}", file=sys.stderr, flush=True)
    done = {e.key: e for e in results.entries}
    entries = [done.get(entry.key, entry) for entry, _ in files]
    found = scoring.score(entries)
    if json:
        body = {"settings": settings, "score": found, "entries": entries}
        print(msgspec.json.format(msgspec.json.encode(body), indent=2).decode())
        return
    print((markdown_table if markdown else text_table)(scoring.COLUMNS, [scoring.cells(e) for e in entries]))
    for line in scoring.sentences(found):
        print(line)


def _files(folder: str, level: int, tasks: str, where: Places) -> list[tuple[Entry, Path]]:
    """The tasks of a checkout or of an imported collection, with their files. Raises UsageProblem."""
    from workbench.commands.tasks_import import matches
    from workbench.importing.checkout import read_checkout
    from workbench.importing.scoring import Entry
    from workbench.importing.stored import Collection

    rows: list[tuple[int, int, str, Path]] = []
    if Path(folder).is_dir():
        checkout = read_checkout(Path(folder), level)
        rows = [(f.level, f.number, f.name, checkout.root / f.path) for f in checkout.files]
    else:
        one = Collection(where.tasks / folder)
        rows = [(r.level, r.number, r.name, one.path_of(r)) for r in one.rows() if level in (0, r.level)]
        if not rows:
            raise UsageProblem(
                f"{folder}: no folder and no imported tasks of level {level}; `workbench tasks import FOLDER` first"
            )
    found = []
    for number, (of_level, task, name, path) in enumerate(rows):
        if not matches(tasks, of_level, task, name):
            continue
        # A file that was never kept (unreadable when imported) is told as one that cannot be run.
        data = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(data).hexdigest()
        twice = sum(r[:2] == (of_level, task) for r in rows[:number])
        key = f"{of_level}/{task}" + (f"#{twice + 1}" if twice else "")
        found.append((Entry(key, name, digest), path))
    if not found:
        raise UsageProblem(f"--tasks {tasks}: matches none of the {len(rows)} tasks; give numbers or names")
    return found


def _request(path: Path, config: Config, where: Places) -> Any:
    from workbench.asking import with_model
    from workbench.commands.running import settings_of

    return with_model(settings_of(str(path), f"bench-{path.stem}", config.run, where), config.llm, vllm=config.vllm)
