"""doctor: what of this machine is fit for the work."""

from __future__ import annotations

import msgspec
import typer

from workbench.commands.common import Json
from workbench.places import places
from workbench_engine.exits import ExitCode


def doctor(json: Json = False) -> None:
    """Look at this machine: ok, warn or fail, and the remedy. Exit status 3 only when something fails."""
    from workbench.doctor import examine, line

    found = []
    for one in examine(places()):
        found.append(one)
        if not json:
            print(line(one), flush=True)
    if json:
        print(msgspec.json.format(msgspec.json.encode(found).decode(), indent=2))
    if any(one.state == "fail" for one in found):
        raise typer.Exit(ExitCode.ENVIRONMENT)
