"""The two yardsticks a learned policy must beat at equal evaluations. Neither learns.

- `random`: every point of the space is equally likely.
- `best-of-n`: the design-space policy's own sampler before any training: its initial network, no exemplars, no
  learning. The initial network is uniform by construction today (all its outputs start at zero), so the two differ
  only in their random streams; they stay apart because a policy that starts from trained weights moves only the second.
"""

from __future__ import annotations

import random

import msgspec
from msgspec import Struct

from workbench_engine.policies.contract import Context, Outcome, Proposal, Update
from workbench_engine.policies.proposing import Indices, proposal_of, uniform, unseen_near
from workbench_engine.tasks.design import DesignSpace
from workbench_sessions.events import Origin


class _RandomState(Struct, frozen=True, tag="random/1"):
    task: str
    rng: tuple[int, tuple[int, ...], float | None]
    seen: list[Indices]
    samples: int


class RandomPolicy:
    """Uniform over the space, never the same point twice."""

    name = "random"

    def __init__(self, space: DesignSpace, seed: int) -> None:
        self._space = space
        self._rng = random.Random(seed)
        self._seen: set[Indices] = set()
        self._samples = 0

    async def propose(self, context: Context, n: int) -> list[Proposal]:
        proposals: list[Proposal] = []
        for _ in range(n):
            indices = unseen_near(self._space, uniform(self._space, self._rng), self._seen, self._rng)
            if indices is None:
                break
            self._seen.add(indices)
            proposals.append(proposal_of(self._space, indices, Origin(policy=self.name), self._samples))
            self._samples += 1
        return proposals

    async def learn(self, context: Context, outcomes: list[Outcome]) -> Update | None:
        return None

    def state(self) -> bytes:
        version, words, gauss = self._rng.getstate()
        return msgspec.msgpack.encode(
            _RandomState(self._space.task, (version, tuple(words), gauss), sorted(self._seen), self._samples)
        )

    def restore(self, state: bytes) -> None:
        try:
            saved = msgspec.msgpack.decode(state, type=_RandomState)
        except msgspec.DecodeError as error:
            raise ValueError(f"state is not of policy {self.name!r}: {error}") from None
        if saved.task != self._space.task:
            raise ValueError(f"state of policy {self.name!r} belongs to task {saved.task!r}, not {self._space.task!r}")
        self._rng.setstate(saved.rng)
        self._seen = set(saved.seen)
        self._samples = saved.samples
