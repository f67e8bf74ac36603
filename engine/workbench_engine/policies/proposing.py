"""What every sampler of a design space shares: a checked space, a point made into a proposal, no point twice."""

from __future__ import annotations

import random

from workbench_engine.policies.contract import Proposal
from workbench_engine.tasks.design import DesignPoint, DesignSpace
from workbench_sessions.events import Origin

Indices = tuple[int, ...]
"""Index of the chosen value in each dimension, in declared order (`DesignSpace.encode`)."""


def proposal_of(space: DesignSpace, indices: Indices, origin: Origin, sample: int, note: str = "") -> Proposal:
    """The rendered kernel of one point as a proposal."""
    point = space.decode(indices)
    return Proposal("kernel", space.render(point).text(), origin, point, sample, note)


def uniform(space: DesignSpace, rng: random.Random) -> Indices:
    """Indices uniform over the space."""
    return tuple(rng.randrange(len(d.values)) for d in space.dimensions)


def unseen_near(space: DesignSpace, start: Indices, seen: set[Indices], rng: random.Random) -> Indices | None:
    """A point not in `seen`, found by a random walk from `start`; by enumeration when few are left; else None."""
    if len(seen) >= space.size:
        return None
    current = list(start)
    for _ in range(8 * len(current) + 64):
        if tuple(current) not in seen:
            return tuple(current)
        d = rng.randrange(len(current))
        current[d] = rng.randrange(len(space.dimensions[d].values))
    # Only a nearly exhausted, hence small, space comes here: the first unseen point comes within len(seen) + 1 steps.
    offset = rng.randrange(space.size)
    for step in range(len(seen) + 1):
        found = _nth(space, (offset + step) % space.size)
        if found not in seen:
            return found
    return None


def _nth(space: DesignSpace, number: int) -> Indices:
    indices = []
    for d in space.dimensions:
        number, index = divmod(number, len(d.values))
        indices.append(index)
    return tuple(indices)


def usable(point: DesignPoint | None, space: DesignSpace) -> Indices | None:
    """Indices of a point of this very space; None when there is none (a person's text, another task's point)."""
    if point is None or point.task != space.task:
        return None
    try:
        return space.encode(point)
    except (KeyError, ValueError):
        return None
