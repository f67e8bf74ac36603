"""bench referee: every exploit must be caught, no control flagged."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace

from workbench.commands.common import Json, Trust, configuration
from workbench.errors import UsageProblem
from workbench_engine.exits import ExitCode

Markdown = Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")]


def referee(
    repeat: Annotated[int, typer.Option(min=1, help="Runs of each file.")] = 10,
    only: Annotated[str, typer.Option(help="Files by pattern, comma separated: 05_*, exploits/, controls/05.")] = "",
    exploits: Annotated[Path, typer.Option(help="Folder of the exploits, with `cpu` and `tasks` in it.")] = Path(
        "tests/exploits"
    ),
    controls: Annotated[Path, typer.Option(help="Folder of the honest twins.")] = Path("tests/controls"),
    kernelbench: Annotated[Path | None, typer.Option(help="A checkout of KernelBench, to compare with.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Raw results; what it holds is not run again.")
    ] = None,
    profile: Annotated[str, typer.Option(help="How carefully each is timed: final, or search (quicker).")] = "final",
    jobs: Annotated[int, typer.Option(min=1, help="Processes side by side, one a core; wants -o.")] = 1,
    naive: Annotated[bool, typer.Option(help="Also say whether a naive check is fooled.")] = True,
    trust: Trust = None,
    json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Judge every exploit and its honest twin. Exit status 1 when one cheat slipped or one control was flagged."""
    from workbench.benching import side_by_side
    from workbench.benching.others import Checkers
    from workbench.benching.refereed import CONTROL_COLUMNS, EXPLOIT_COLUMNS, cells, fold, sentence, summary
    from workbench.benching.refereeing import Other, Setting, drive, load, save
    from workbench.benching.tables import markdown_table, text_table
    from workbench.benching.trials import find_trials, task_file
    from workbench.commands.judging import builds

    if profile not in ("search", "final"):
        raise UsageProblem(f"--profile {profile!r} is unknown; known: search, final")
    if kernelbench is not None and not (kernelbench / "src" / "kernelbench").is_dir():
        raise UsageProblem(f"--kernelbench {kernelbench}: holds no src/kernelbench; give a checkout of KernelBench")
    resolved, where = configuration({"run.trust": trust})
    trials = find_trials([exploits, controls], "cpu", only)
    results = load(output, profile)
    folders = [exploits, controls]
    trusted, cache = resolved.config.run.trust, builds(where)
    if jobs > 1 and output is None:
        raise UsageProblem("--jobs gathers results in a file; name it with -o")
    if output is not None and jobs > 1:
        options = ["--exploits", str(exploits), "--controls", str(controls), *(["--trust"] if trusted else [])]
        cores = side_by_side.usable_cores(jobs)
        results = side_by_side.drive(trials, repeat, results, options, output, cores, _say)
    else:
        results = drive(trials, repeat, results, Setting(folders, cache, trusted, profile), output, _say)
    checkers = Checkers(cache, trusted, kernelbench) if naive or kernelbench is not None else None
    asked: list[tuple[str, Callable[..., Other]]] = []
    if checkers is not None:
        asked += [("naive", checkers.naive)] if naive else []
        asked += [("kernelbench", checkers.kernelbench)] if kernelbench is not None else []
    for field, ask in asked:
        have = {one.key for one in getattr(results, field)}
        for trial in trials:
            if (trial.role, trial.name, trial.sha256) in have:
                continue
            _say(f"{field}: {trial.role}s/{trial.name}")
            said = ask(trial, task_file(trial.task, folders))
            results = replace(results, **{field: [*getattr(results, field), said]})
            save(output, results)
    lines = fold(trials, results)
    found = summary(lines)
    if json:
        body = {"summary": found, "sandbox": results.sandbox, "lines": [_plain(line) for line in lines]}
        print(msgspec.json.format(msgspec.json.encode(body).decode(), indent=2))
    else:
        table = markdown_table if markdown else text_table
        for role, columns in (("exploit", EXPLOIT_COLUMNS), ("control", CONTROL_COLUMNS)):
            rows = [cells(line) for line in lines if line.trial.role == role]
            if rows:
                print(table(columns, rows))
                print()
        print(sentence(found))
    raise typer.Exit(ExitCode.OK if found.sound else ExitCode.FAILED)


def _plain(line: object) -> object:
    """A line as JSON may carry it: without the file's text and path."""
    body = msgspec.to_builtins(line, enc_hook=str)
    for hidden in ("text", "path"):
        body["trial"].pop(hidden)
    return body


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
