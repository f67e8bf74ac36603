"""What one prompt asks for: a whole file, changes to one, a cross of two, or a broken one mended. Pure."""

from __future__ import annotations

import random
from typing import Literal

from msgspec import Struct

from workbench_engine.llm.settings import PatchWeights
from workbench_engine.policies.contract import Context, Scored
from workbench_engine.policies.llm.extract import Kind
from workbench_engine.rl.contrastive import score_of

PatchKind = Literal["full", "diff", "cross", "repair"]

FIX_SHARE = 0.5
"""While nothing is correct, this share of the prompts mends a broken candidate; the rest starts afresh."""


class Plan(Struct, frozen=True):
    """`exemplars` are slow to fast and do not hold `base` or `other` when the patch shows these by themselves."""

    patch: PatchKind
    exemplars: tuple[Scored, ...] = ()
    base: Scored | None = None
    other: Scored | None = None

    @property
    def parents(self) -> tuple[str, ...]:
        """Whom the candidate is made from: what it changes or crosses, else the fastest it was shown."""
        made_from = [s for s in (self.base, self.other) if s is not None]
        return tuple(s.candidate for s in made_from or self.exemplars[-1:])

    @property
    def shown(self) -> tuple[Scored, ...]:
        """All candidates with a speedup that the prompt shows, slow to fast."""
        known = {s.candidate: s for s in (*self.exemplars, self.base, self.other) if s is not None}
        rated = [s for s in known.values() if score_of(s) is not None]
        return tuple(sorted(rated, key=lambda s: s.speedup or 0.0))


def kind_of(text: str) -> Kind:
    """The kind of a candidate's file."""
    return "module" if "ModelNew" in text and "kernel_run" not in text else "kernel"


def plan(context: Context, kind: Kind, weights: PatchWeights, rng: random.Random) -> Plan:
    """Draws the patch by weight among those that the context allows; a whole file always is."""
    exemplars = tuple(s for s in context.exemplars if score_of(s) is not None)
    parents = tuple(s for s in context.parents if score_of(s) is not None)
    usable = [s for s in (*reversed(exemplars), *parents) if kind_of(s.text) == kind]
    if not exemplars and not parents:
        broken = [s for s in context.parents if s.feedback and kind_of(s.text) == kind]
        if broken and rng.random() < FIX_SHARE:
            return Plan("repair", base=broken[0])
        return Plan("full")
    base = usable[0] if usable else None
    other = next((s for s in usable[1:] if base is not None and s.candidate != base.candidate), None)
    allowed: list[tuple[PatchKind, float]] = [("full", weights.full)]
    if base is not None:
        allowed.append(("diff", weights.diff))
    if other is not None:
        allowed.append(("cross", weights.cross))
    total = sum(w for _, w in allowed)
    patch = rng.choices([p for p, _ in allowed], [w for _, w in allowed])[0] if total > 0.0 else "full"
    if patch == "full":
        return Plan("full", exemplars or parents[:1])
    taken = {s.candidate for s in (base, other if patch == "cross" else None) if s is not None}
    rest = tuple(s for s in exemplars if s.candidate not in taken)
    return Plan(patch, rest, base, other if patch == "cross" else None)
