"""tasks list | show | check | import."""

from __future__ import annotations

import ast
import asyncio
from typing import Annotated, Any

import msgspec
import typer

from workbench.commands.common import Json, Trust, configuration
from workbench.commands.tasks_import import import_
from workbench.errors import UsageProblem
from workbench.importing.stored import collections, task_file
from workbench.places import places
from workbench_engine.tasks.catalogue import bundled_names, bundled_path, bundled_space, space_for
from workbench_engine.tasks.contract import ShapeCase, Task, TaskRejected
from workbench_engine.tasks.design import DesignSpace

app = typer.Typer(no_args_is_help=True, help="List, show, check and import tasks.")
TaskName = Annotated[str, typer.Argument(help="A bundled or imported task's name, or a task file.")]

app.command("import")(import_)


@app.command("list")
def list_(json: Json = False) -> None:
    """The bundled tasks, then the imported ones."""
    rows: list[dict[str, Any]] = []
    for name in bundled_names():
        space = bundled_space(name)
        rows.append({"name": name, "title": title_of(name), "space": space.size if space else None})
    if json:
        rows += imported()
        print(msgspec.json.format(msgspec.json.encode(rows).decode(), indent=2))
        return
    width = max(len(str(row["name"])) for row in rows)
    for row in rows:
        size = row["space"]
        points = f"{size:>12.3g} points" if isinstance(size, int) else "no design space"
        print(f"{row['name']:<{width}}  {points:>19}  {row['title']}")
    for row in imported():
        print(f"{row['name']:<{width}}  {row['state']:>19}  {row['title']}")


@app.command()
def show(task: TaskName, json: Json = False, source: Annotated[bool, typer.Option("--source")] = False) -> None:
    """A task's file and its design space, without running anything of it."""
    try:
        path = task_file(places().tasks, task)
        space = space_for(path)
        text = path.read_text(encoding="utf-8")
    except TaskRejected as error:
        raise UsageProblem(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{task}: cannot be read ({error})") from None
    if json:
        body = {"path": str(path), "source": text, "space": space_card(space)}
        print(msgspec.json.format(msgspec.json.encode(body).decode(), indent=2))
        return
    print(path)
    if source or space is None:
        print(text)
    if space is not None:
        print(f"design space of {space.size:.3g} points")
        for one in space.dimensions:
            print(f"  {one.group:<10} {one.name:<16} {', '.join(map(str, one.values))}  — {one.doc}")


@app.command()
def check(task: TaskName, trust: Trust = None, json: Json = False) -> None:
    """Load a task in the sandbox, lint it and describe it. Exit status 2 with the reason when it cannot be used."""
    from workbench.judging import describe, read_task

    opened = read_task(task)
    resolved, _ = configuration({"run.trust": trust})
    found = asyncio.run(describe(opened, resolved.config.run.trust))
    if json:
        print(msgspec.json.format(msgspec.json.encode(found).decode(), indent=2))
        return
    for line in task_lines(found):
        print(line)


def imported() -> list[dict[str, Any]]:
    """The imported tasks: name, state, and as title the file's name with the reason or what was cut."""
    found = []
    for one in collections(places().tasks):
        for row in one.rows():
            said = row.cause or ", ".join(row.sizes)
            title = row.name.partition("_")[2] + (f" ({said})" if said else "")
            found.append({"name": f"{one.name}/{row.key}", "title": title, "space": None, "state": row.state})
    return found


def title_of(name: str) -> str:
    """First line of a bundled task's docstring, read without running it."""
    doc = ast.get_docstring(ast.parse(bundled_path(name).read_text(encoding="utf-8"))) or ""
    return doc.splitlines()[0].rstrip(".") if doc else name


def space_card(space: DesignSpace | None) -> dict[str, Any] | None:
    """A design space as plain values."""
    if space is None:
        return None
    return {"size": space.size, "dimensions": [msgspec.to_builtins(one) for one in space.dimensions]}


def task_lines(task: Task) -> list[str]:
    """A described task for people."""
    stochastic = ", draws random numbers" if task.stochastic else ""
    lines = [f"{task.name}: {task.title} ({task.dtype}{stochastic}) can be used"]
    for case in (*task.cases.values(), *task.hidden):
        lines.append(f"  {case.name:<9} {_shapes(case)}")
    return lines


def _shapes(case: ShapeCase) -> str:
    dims = " ".join(f"{name}={size}" for name, size in case.dims.items())
    tensors = ", ".join(f"{t.role} {t.name}{list(t.shape)}" for t in case.tensors)
    cost = f"; {case.bytes_moved:,} bytes" if case.bytes_moved is not None else ""
    cost += f", {case.flops:,} flops" if case.flops is not None else ""
    return f"{dims}: {tensors}{cost}"
