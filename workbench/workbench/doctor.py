"""Looks at this machine and says, a line each, what is well and what to do about the rest. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from workbench.examining import machine, screen, software
from workbench.examining.finding import Examined
from workbench.places import Places
from workbench.terminal import this_terminal


def examinations(where: Places) -> list[Callable[[], list[Examined]]]:
    """All of them, the quick ones first."""
    here = this_terminal()
    return [
        software.python,
        software.packages,
        lambda: screen.terminal(here, screen.size_of_terminal(), os.environ),
        machine.cores,
        machine.noise,
        machine.memory,
        lambda: machine.folders(where),
        software.compiler,
        software.sandbox,
        software.malloc,
        machine.gpu,
        machine.cuda_compiler,
        software.torch_runs,
    ]


def examine(where: Places) -> Iterator[Examined]:
    """The findings as they come."""
    for examination in examinations(where):
        yield from examination()


def line(one: Examined) -> str:
    """A finding for people; the word carries the state, not a colour."""
    remedy = f"; {one.remedy}" if one.remedy else ""
    return f"{one.state:<4}  {one.subject:<15}  {one.said}{remedy}"
