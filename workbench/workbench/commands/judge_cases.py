"""judge-cases: the past cheats that the adversarial judge compares with."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from workbench.commands.common import Json
from workbench.commands.control import kind_of_file, read_candidate
from workbench.errors import CommandFailed, EnvironmentProblem, UsageProblem
from workbench.places import places
from workbench_engine.referee.adversary.cases import Case, Cases, CasesUnusable

app = typer.Typer(no_args_is_help=True, help="Past cheats that the judge compares with.")
Name = Annotated[str, typer.Argument(help="A case, or the beginning of its name.")]


def _cases() -> Cases:
    return Cases(places().cases)


@app.command("list")
def list_cases(json: Json = False) -> None:
    """Every case, oldest first."""
    try:
        cases = _cases().all()
    except CasesUnusable as error:
        raise EnvironmentProblem(str(error)) from None
    if json:
        print(msgspec.json.format(msgspec.json.encode(cases).decode(), indent=2))
        return
    for case in cases:
        day = time.strftime("%Y-%m-%d", time.localtime(case.at_s))
        print(f"{case.name}  {day}  {case.kind:<6}  {', '.join(case.codes) or '—'}  {case.origin}".rstrip())
    if not cases:
        print(
            "no cases yet: every candidate caught cheating becomes one, and `workbench judge-cases add FILE` adds one"
        )


@app.command()
def show(name: Name) -> None:
    """What a case did, and its code."""
    case = _one(name)
    print(f"{case.name}  {case.kind}  {case.origin}\n{', '.join(case.codes)}\n{case.said}\n\n{case.text}".rstrip())


@app.command()
def forget(name: Name) -> None:
    """Drop a case: one that was no cheat after all makes the judge suspect honest code."""
    case = _one(name)
    try:
        _cases().forget(case.sha256)
    except CasesUnusable as error:
        raise EnvironmentProblem(str(error)) from None
    print(f"forgot {case.name}")


@app.command()
def add(
    files: Annotated[list[Path], typer.Argument(help="Files (.cpp, .py), or folders of them.")],
    code: Annotated[str, typer.Option(help="The finding it stands for, where a file's header does not say.")] = "",
) -> None:
    """Add files that are known to cheat; those whose header says `control:` are left out."""
    from workbench.benching.trials import parse
    from workbench_engine.referee.findings import BY_CODE
    from workbench_engine.search.novelty import fingerprint

    if code and code not in BY_CODE:
        raise UsageProblem(f"--code {code!r} is no finding; known: {', '.join(sorted(BY_CODE))}")
    cases, new, known = _cases(), 0, 0
    for path in _files(files):
        text, kind = read_candidate(path), kind_of_file(path)
        trial = parse(path, text)
        if trial is not None and trial.role == "control":
            continue
        codes = (code,) if code else trial.findings if trial is not None else ()
        said = trial.mechanism or trial.title if trial is not None else ""
        if not codes and not said:
            raise UsageProblem(
                f"{path}: nothing says how it cheats; give --code, or a header as docs/referee.md has it"
            )
        case = Case(fingerprint(text, kind), kind, text, codes, said, f"file {path.name}")
        try:
            added = cases.remember(case)
        except CasesUnusable as error:
            raise EnvironmentProblem(str(error)) from None
        new, known = new + added, known + (not added)
    print(f"{new} added, {known} known already")


def _files(given: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in given:
        inside = sorted(p for p in path.rglob("*") if p.suffix in (".py", ".cpp")) if path.is_dir() else [path]
        found += inside
    if not found:
        raise CommandFailed("no .py or .cpp file there")
    return found


def _one(name: str) -> Case:
    try:
        found = _cases().named(name)
    except CasesUnusable as error:
        raise EnvironmentProblem(str(error)) from None
    if len(found) != 1:
        what = "no case" if not found else f"{len(found)} cases"
        raise UsageProblem(f"{name!r} names {what}; see `workbench judge-cases list`")
    return found[0]
