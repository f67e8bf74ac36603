"""tasks import: a KernelBench checkout, file by file."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from workbench.commands.common import Json, Trust, configuration
from workbench.errors import EnvironmentProblem, UsageProblem

if TYPE_CHECKING:
    from workbench.importing.checkout import Checkout
    from workbench.importing.rows import Row
    from workbench.importing.stored import About


def import_(
    folder: Annotated[Path, typer.Argument(help="A checkout of KernelBench, or one of its level folders.")],
    level: Annotated[int, typer.Option(min=0, help="One level; 0 = all.")] = 0,
    only: Annotated[str, typer.Option(help="Tasks: 23, 1/23, 1/2*; comma separated.")] = "",
    shrink: Annotated[
        bool, typer.Option("--shrink", "--cpu", help="Cut the sizes of large tasks, in the copy, until a CPU can do.")
    ] = False,
    name: Annotated[str, typer.Option(help="What the tasks are called by: NAME/LEVEL/NUMBER.")] = "kernelbench",
    commit: Annotated[str, typer.Option(help="Its commit, where the folder does not say.")] = "",
    jobs: Annotated[int, typer.Option(min=1, help="Files at once.")] = 1,
    deadline: Annotated[float, typer.Option(min=1, help="Seconds a file may take.")] = 120.0,
    memory: Annotated[float, typer.Option(min=0, help="GiB a file may take; 0 = six tenths of what is free.")] = 0.0,
    retry: Annotated[bool, typer.Option("--retry", help="Examine again what could not be opened.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Rows to this .json or .jsonl file.")] = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Bring in the tasks of a KernelBench checkout: describe and lint each in the sandbox, keep a copy, count.

    Can be cut off and called again: files that did not change are not examined anew. Exit status 0 when all files have
    been examined, whatever was found.
    """
    from workbench.importing.checkout import read_checkout
    from workbench.importing.examining import GIB, Care
    from workbench.importing.running import default_memory, import_files, waiting
    from workbench.importing.stored import collection
    from workbench.importing.tables import line

    if output is not None and output.suffix not in (".json", ".jsonl"):
        raise UsageProblem(f"--output {output}: give a .json or .jsonl file")
    checkout = read_checkout(folder, level)
    files = [found for found in checkout.files if matches(only, found.level, found.number, found.name)]
    if not files:
        raise UsageProblem(f"--only {only}: matches no file; tasks are LEVEL/NUMBER, as 1/23")
    resolved, where = configuration({"run.trust": trust})
    care = Care(deadline, int(memory * GIB) or default_memory(jobs), shrink)
    into = collection(where.tasks, name)
    about = into.about()
    if about is not None and about.source != checkout.root.resolve().name:
        raise UsageProblem(f"--name {name}: holds tasks of {about.source}; choose another name")
    into.begin(_about(checkout, commit), checkout.licence_text)
    todo = waiting(files, into.rows(), care, retry)
    if len(todo) < len(files):
        print(f"{len(files) - len(todo)} of {len(files)} files are imported already", file=sys.stderr)

    def say(row: Row, place: int, total: int) -> None:
        print(f"{place}/{total} {line(row)}", file=sys.stderr, flush=True)

    if todo:
        import_files(todo, into, care, jobs, resolved.config.run.trust, say)
    names = {(found.level, found.number, found.name) for found in files}
    rows = [row for row in into.rows() if (row.level, row.number, row.name) in names]
    if output is not None:
        _write(output, rows)
    _report(rows, name, json)


def _report(rows: list[Row], name: str, json: bool) -> None:
    from workbench.benching.tables import text_table
    from workbench.importing.rows import counted
    from workbench.importing.tables import COUNT_COLUMNS, ROW_COLUMNS, count_cells, row_cells

    counts = counted(rows)
    if json:
        body = {"name": name, "counts": counts, "rows": rows}
        print(msgspec.json.format(msgspec.json.encode(body), indent=2).decode())
        return
    print(text_table(ROW_COLUMNS, [row_cells(row) for row in rows]))
    print()
    print(text_table(COUNT_COLUMNS, [count_cells(one) for one in counts]))
    usable = next((row for row in rows if row.state == "clean"), None)
    if usable is not None:
        print(f"next: workbench run {name}/{usable.key}", file=sys.stderr)


def _write(output: Path, rows: list[Row]) -> None:
    if output.suffix == ".jsonl":
        body = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    else:
        body = msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n"
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(body)
    except OSError as error:
        raise EnvironmentProblem(f"{output}: cannot be written ({error.strerror or error})") from error


def _about(checkout: Checkout, commit: str) -> About:
    from workbench.importing.stored import About
    from workbench_engine.host import installed

    return About(
        source=checkout.root.resolve().name,
        commit=commit or checkout.commit,
        licence=checkout.licence,
        imported=time.strftime("%Y-%m-%d", time.gmtime()),
        version=installed("kernel-workbench"),
    )


def matches(only: str, level: int, number: int, name: str) -> bool:
    """Whether `only` (patterns, comma separated; empty: all) names a task by number, level and number, or name."""
    import fnmatch

    patterns = [one.strip() for one in only.split(",") if one.strip()]
    names = (str(number), f"{level}/{number}", name, f"{level}/{name}")
    return not patterns or any(fnmatch.fnmatchcase(n, pattern) for n in names for pattern in patterns)
