"""Which mutants are tried: honest candidates of each task, and their faults in an order that is the same every time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from workbench.benching.mutating import cxx, python
from workbench.benching.mutating.edits import Edit, Mutant, mutant_of
from workbench.benching.mutating.modules import MODULES
from workbench_engine.tasks.catalogue import bundled_space


class Honest(Struct, frozen=True):
    """A candidate to put faults into. `origin`: a design point's key, or "module"."""

    task: str
    origin: str
    kind: Literal["kernel", "module"]
    text: str

    def edits(self) -> list[Edit]:
        return cxx.edits(self.text) if self.kind == "kernel" else python.edits(self.text)


def kernels(task: str, seed: int) -> Iterator[Honest]:
    """Kernels of random design points, the naive one first; some points are wrong, which the caller must find out."""
    space = bundled_space(task)
    if space is None:
        return
    rng = random.Random(f"{seed}:{task}")
    point = space.naive
    while True:
        yield Honest(task, point.key(), "kernel", cxx.with_helpers(space.render(point).text()))
        point = space.sample(rng)


def module(task: str) -> Honest | None:
    """The written-out module of a task."""
    return Honest(task, "module", "module", MODULES[task]) if task in MODULES else None


def drawn(honest: Sequence[Honest], seed: int, module_share: float = 0.2) -> Iterator[Mutant]:
    """Mutants without end of supply but for their number: kinds of fault in turn, candidates at random, none twice."""
    if not honest:
        return
    rng = random.Random(f"{seed}:{honest[0].task}")
    piles: dict[str, dict[str, list[Mutant]]] = {"kernel": {}, "module": {}}
    for one in honest:
        for edit in one.edits():
            mutant = mutant_of(one.task, one.origin, one.kind, one.text, edit)
            piles[one.kind].setdefault(edit.fault, []).append(mutant)
    turns: dict[str, list[str]] = {}
    for kind, by_fault in piles.items():
        for fault in sorted(by_fault):
            by_fault[fault].sort(key=lambda m: m.key)
            rng.shuffle(by_fault[fault])
        turns[kind] = sorted(by_fault)
        rng.shuffle(turns[kind])
    seen: set[str] = set()
    while turns["kernel"] or turns["module"]:
        wanted = "module" if rng.random() < module_share else "kernel"
        kind = wanted if turns[wanted] else ("kernel" if turns["kernel"] else "module")
        fault = turns[kind].pop(0)
        mutant = piles[kind][fault].pop()
        if piles[kind][fault]:
            turns[kind].append(fault)
        if mutant.text not in seen:
            seen.add(mutant.text)
            yield mutant
