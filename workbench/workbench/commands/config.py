"""config show | path | validate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from workbench.commands.common import Json, configuration
from workbench.config import LOCAL_FILE, read_file, resolve
from workbench.errors import UsageProblem
from workbench.places import places

app = typer.Typer(no_args_is_help=True, help="Show and check the configuration.")


@app.command()
def show(json: Json = False) -> None:
    """Every value with its origin."""
    resolved, _ = configuration()
    if json:
        print(msgspec.json.format(msgspec.json.encode(resolved.origins).decode(), indent=2))
        return
    width = max(len(one.key) for one in resolved.origins)
    for one in resolved.origins:
        print(f"{one.key:<{width}} = {toml(one.value):<16}  # {one.origin}")


@app.command()
def path(json: Json = False) -> None:
    """Where configuration, sessions, caches and logs are."""
    here = places()
    rows = {
        "config": str(here.config_file),
        "local config": str(Path(LOCAL_FILE).absolute()),
        "sessions": str(here.sessions),
        "cache": str(here.cache),
        "state": str(here.state),
    }
    if json:
        print(msgspec.json.format(msgspec.json.encode(rows).decode(), indent=2))
        return
    for name, value in rows.items():
        print(f"{name:<12}  {value}")


@app.command()
def validate(
    file: Annotated[Path | None, typer.Argument(help="A TOML file (default: all that are in force).")] = None,
) -> None:
    """Check a configuration. Exit status 2 with one line when it cannot be used."""
    if file is None:
        configuration()
    elif not file.is_file():
        raise UsageProblem(f"{file}: no such file")
    else:
        resolve([read_file(file)])
    print("valid")


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return msgspec.json.encode(value).decode()
