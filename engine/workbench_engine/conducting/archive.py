"""Judged candidates as the search and the policy may know them. The log is the truth; this is rebuilt from it."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from workbench_engine.conducting.evaluation import CORRECT
from workbench_engine.policies.contract import Context, FailedStage, Proposal, Scored
from workbench_engine.rl.contrastive import ContrastiveSettings, draw_exemplars, draw_random, score_of
from workbench_engine.search.population import Population, PopulationSettings
from workbench_engine.settings import RunSettings
from workbench_engine.tasks.design import DesignPoint
from workbench_sessions.events import IslandMigrated
from workbench_sessions.projection import Candidate, Details, Projection

UNCONDITIONED = frozenset((None, "sample", "repair"))
"""Kinds of proposals (`Origin.patch`) that were made without looking at any correct candidate."""

FAILURES_KEPT = 16
"""So many incorrect candidates are remembered, so that a prompt can say what to avoid."""


class Lineage(Struct, frozen=True):
    """What a proposal was really made from."""

    parents: tuple[Scored, ...] = ()
    exemplars: tuple[Scored, ...] = ()

    @property
    def generation(self) -> int:
        return 1 + max((p.generation for p in self.parents), default=-1)


def lineage(proposal: Proposal, context: Context) -> Lineage:
    """A sample drawn from nothing has no parents, a contrastive one stems from its fast exemplar."""
    if proposal.origin.patch in UNCONDITIONED:
        return Lineage()
    known = tuple(s for s in context.exemplars if score_of(s) is not None)
    if known:
        return Lineage(parents=known[-1:], exemplars=known)
    return Lineage(parents=context.parents[:1])


def failed_stage(row: Candidate, details: Details) -> FailedStage:
    """Where a judged candidate failed."""
    if row.verdict == "WRONG":
        return "verify"
    if row.verdict == "CHEATING":
        return "judge"
    if row.verdict != "FAILED":
        return ""
    if details.verify_s is None:
        # The compiler's complaint became the reason; a module fails to load where a kernel fails to build.
        unbuilt = details.build_s is not None and details.feedback == row.reason
        return "build" if unbuilt or (row.kind == "module" and details.build_s is None) else ""
    return "time"


class Archive:
    """The population and what people decided about its members."""

    def __init__(self, task: str, settings: RunSettings) -> None:
        self._task = task
        self._settings = settings
        self._population = Population(
            settings.islands,
            settings.archive,
            settings.seed,
            PopulationSettings(migration_interval=settings.migration_interval),
        )
        self._held: set[str] = set()
        self._failures: deque[Scored] = deque(maxlen=FAILURES_KEPT)

    def rebuild(self, p: Projection, source: Callable[[str], str], groups: int) -> None:
        """Everything judged so far, after `groups` groups; `source` gives a text by its hash."""
        for _ in range(groups):
            # On an empty population these only advance the turns.
            self._population.next_island()
            self._population.migrate()
        judged = sorted((r for r in p.candidates.values() if r.verdict is not None), key=lambda r: r.evaluation or 0)
        for row in judged:
            if p.header.mode == "review" and row.decision == "review":
                self.hold(row.id)
            self.take(row, p.details.get(row.id, Details()), source(row.source_sha256))
        for row in p.candidates.values():
            if row.decision == "rejected":
                self.reject(row.id)
        for _, target, candidate, _ in p.migrations:
            moved = p.candidates.get(candidate)
            if moved is not None and moved.verdict is not None:
                scored = self.scored_of(moved, p.details.get(candidate, Details()), source(moved.source_sha256))
                self._population.add(replace(scored, island=target % self._settings.islands))

    def scored_of(self, row: Candidate, details: Details, text: str) -> Scored:
        """A judged row as a policy may know it."""
        point = DesignPoint(self._task, dict(details.point)) if details.point is not None else None
        return Scored(
            candidate=row.id,
            text=text,
            point=point,
            speedup=row.speedup if row.verdict in CORRECT else None,
            verdict=row.verdict or "",
            island=row.island,
            generation=row.generation,
            feedback=details.feedback or row.reason,
            failed=failed_stage(row, details),
        )

    def take(self, row: Candidate, details: Details, text: str, again: bool = False) -> None:
        """A judged candidate; `again` replaces what an earlier measurement said."""
        scored = self.scored_of(row, details, text)
        if scored.speedup is None and not again:
            self._failures.append(scored)
        self._population.add(scored, () if again else row.parents)

    def context(self, group: int, steering: str, rng: random.Random, accepted: Collection[str] = ()) -> Context:
        """What the next group is conditioned on: a parent of its island, exemplars of the whole task.

        CUDA-L1 buckets all successful codes of a task. Drawn from one island alone the contrast was between 0.8× and
        0.9× while the other island held 1.9×. `accepted` ones are preferred inside their bucket.
        """
        island = self._population.next_island()
        exemplars = self._exemplars(island, rng, accepted)
        parents = self._population.pick_parents(island, rng)
        failures = tuple(reversed(self._failures))
        return Context(self._task, group, island, parents, exemplars, steering, failures)

    def _exemplars(self, island: int, rng: random.Random, accepted: Collection[str]) -> tuple[Scored, ...]:
        count = self._settings.exemplars
        if self._settings.contrast == "random":
            return draw_random(self._population.scored(), count, rng)
        pool = self._population.scored(island if self._settings.contrast == "island" else None)
        return draw_exemplars(pool, ContrastiveSettings(exemplars=count), rng, accepted)

    def group_done(self) -> list[IslandMigrated]:
        """Migrations that are due after one more group."""
        return [
            IslandMigrated(source=m.source, target=m.target, candidate=m.candidate) for m in self._population.migrate()
        ]

    def hold(self, candidate: str) -> None:
        self._held.add(candidate)
        self._population.hold(candidate)

    def release(self, candidate: str) -> None:
        self._held.discard(candidate)
        self._population.release(candidate)

    def release_all(self) -> None:
        """Leaves review mode."""
        for candidate in tuple(self._held):
            self.release(candidate)

    def reject(self, candidate: str) -> None:
        self.release(candidate)
        self._population.reject(candidate)

    def restore(self, candidate: str) -> None:
        self._population.restore(candidate)
