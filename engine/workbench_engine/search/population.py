"""The population: islands of judged candidates, who may be a parent, and who migrates.

Parents follow ShinkaEvolve's weighted rule: `w = sigmoid(lambda (f - median) / MAD) / (1 + children)`, f = ln speedup.
Everything is a function of the seed and of the order of the calls, so a population is rebuilt by replaying them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

import msgspec
from msgspec import Struct

from workbench_engine.policies.contract import Scored
from workbench_engine.rl.contrastive import score_of


class PopulationSettings(Struct, frozen=True):
    """`migration_interval` in groups (calls of `migrate`); the best `migration_rate` of an island move, at least 1."""

    parents: int = 2
    sharpness: float = 10.0
    mad_floor: float = 1e-6
    migration_interval: int = 4
    migration_rate: float = 0.1

    def __post_init__(self) -> None:
        if self.parents < 1 or self.migration_interval < 1 or not 0.0 < self.migration_rate <= 1.0:
            raise ValueError("population settings need parents >= 1, migration_interval >= 1, 0 < migration_rate <= 1")


class Migration(NamedTuple):
    """One candidate that now also lives on `target`."""

    source: int
    target: int
    candidate: str


class Population:
    """Islands with an archive of at most `archive` candidates each."""

    def __init__(
        self,
        islands: int = 2,
        archive: int = 40,
        seed: int = 0,
        settings: PopulationSettings = PopulationSettings(),
    ) -> None:
        if islands < 1 or archive < 1:
            raise ValueError(f"a population needs at least 1 island and an archive of 1, not {islands} and {archive}")
        self._settings = settings
        self._archive = archive
        self._rng = random.Random(seed)
        self._members: list[dict[str, Scored]] = [{} for _ in range(islands)]
        self._children: dict[str, int] = {}
        self._rejected: set[str] = set()
        self._held: set[str] = set()
        self._turn = 0
        self._ticks = 0

    @property
    def islands(self) -> int:
        return len(self._members)

    def add(self, scored: Scored, parents: Iterable[str] = ()) -> None:
        """Take a judged candidate into its island (the same id again replaces it). `parents` had one child more."""
        if not 0 <= scored.island < self.islands:
            raise ValueError(f"{scored.candidate}: island {scored.island} is not in 0..{self.islands - 1}")
        self._place(scored.island, scored)
        for parent in parents:
            self._children[parent] = self._children.get(parent, 0) + 1

    def reject(self, candidate: str) -> None:
        """A person's no: never a parent, exemplar or migrant again, until `restore`."""
        self._rejected.add(candidate)

    def restore(self, candidate: str) -> None:
        self._rejected.discard(candidate)

    def hold(self, candidate: str) -> None:
        """Review mode: not a parent until `release`."""
        self._held.add(candidate)

    def release(self, candidate: str) -> None:
        self._held.discard(candidate)

    def available(self, candidate: str) -> bool:
        """Whether neither a person nor review mode keeps it from being used."""
        return candidate not in self._rejected and candidate not in self._held

    def scored(self, island: int | None = None) -> tuple[Scored, ...]:
        """Usable members of one island, or of all (each once), in the order they came."""
        islands = self._members if island is None else [self._members[island]]
        found: dict[str, Scored] = {}
        for members in islands:
            for candidate, scored in members.items():
                if self.available(candidate):
                    found.setdefault(candidate, scored)
        return tuple(found.values())

    @property
    def best(self) -> Scored | None:
        """The fastest usable candidate; the earlier one of equals."""
        rated = [s for s in self.scored() if score_of(s) is not None]
        return max(rated, key=_fitness) if rated else None

    def next_island(self) -> int:
        """Islands take turns, so each is sampled."""
        island = self._turn % self.islands
        self._turn += 1
        return island

    def pick_parents(self, island: int, rng: random.Random | None = None) -> tuple[Scored, ...]:
        """Distinct parents, drawn by weight; the first is the main one. Empty when the island has nobody usable.

        Fix mode: while the island has nothing correct, a correct one of another island serves; while there is none at
        all, the parents are incorrect ones with feedback, latest first.
        """
        draw = rng or self._rng
        pool = [s for s in self.scored(island) if score_of(s) is not None]
        pool = pool or [s for s in self.scored() if score_of(s) is not None]
        if not pool:
            broken = [s for s in self.scored(island) if s.feedback] or [s for s in self.scored() if s.feedback]
            return tuple(reversed(broken[-self._settings.parents :]))
        weights = parent_weights(
            [_fitness(s) for s in pool], [self._children.get(s.candidate, 0) for s in pool], self._settings
        )
        chosen: list[Scored] = []
        while pool and len(chosen) < self._settings.parents:
            i = draw.choices(range(len(pool)), weights)[0]
            chosen.append(pool.pop(i))
            weights.pop(i)
        return tuple(chosen)

    def migrate(self) -> list[Migration]:
        """Call once a group. Every `migration_interval` calls the best of each island are copied to the next one."""
        self._ticks += 1
        if self.islands < 2 or self._ticks % self._settings.migration_interval:
            return []
        leaving: list[tuple[int, Scored]] = []
        for source in range(self.islands):
            target = (source + 1) % self.islands
            rated = [s for s in self.scored(source) if score_of(s) is not None]
            fresh = [s for s in rated if s.candidate not in self._members[target]]
            count = math.ceil(self._settings.migration_rate * len(rated))
            leaving += [(source, s) for s in sorted(fresh, key=_fitness, reverse=True)[:count]]
        moved = []
        for source, scored in leaving:
            target = (source + 1) % self.islands
            self._place(target, msgspec.structs.replace(scored, island=target))
            moved.append(Migration(source, target, scored.candidate))
        return moved

    def _place(self, island: int, scored: Scored) -> None:
        members = self._members[island]
        members[scored.candidate] = scored
        while len(members) > self._archive:
            # The worst leaves, the oldest of equals; a held one counts as it is, it may yet be accepted.
            del members[min(members, key=lambda c: _fitness(members[c]))]


def parent_weights(
    fitness: Sequence[float], children: Sequence[int], settings: PopulationSettings = PopulationSettings()
) -> list[float]:
    """Unnormalised weights of the weighted rule; `fitness` in ln speedup, none empty."""
    middle = median(fitness)
    scale = max(settings.mad_floor, median(abs(f - middle) for f in fitness))
    return [
        _sigmoid(settings.sharpness * (f - middle) / scale) / (1 + n) for f, n in zip(fitness, children, strict=True)
    ]


def _sigmoid(x: float) -> float:
    # Weights must stay positive: with all of them at zero nobody could be drawn.
    return 1.0 / (1.0 + math.exp(min(500.0, max(-500.0, -x))))


def _fitness(scored: Scored) -> float:
    score = score_of(scored)
    return -math.inf if score is None else score
