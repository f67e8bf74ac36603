"""Which of several endpoints is asked: asymmetric UCB on refereed improvement per cost.

Source: ShinkaEvolve's bandit over models (arXiv 2509.19349 and its implementation). The reward is one-sided,
`r = max(0, f_child - max(f_parent, baseline))`: a model is judged by its gains, not by its failures. Here f is the
refereed ln speedup, so that r is a gain in the natural logarithm. What differs is said where it differs.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from workbench_engine.llm.contract import Completion, OnChunk, Request
from workbench_engine.llm.errors import BadCredentials, CapReached, ModelError, ModelUnavailable

COSTS_KEPT = 64


class BanditSettings(Struct, frozen=True):
    """`explore` is c, `cost_weight` k, `cost_power` p, `epsilon` the share of uniform draws, `decay` for one reward."""

    explore: float = 1.0
    cost_weight: float = 0.5
    cost_power: float = 1.0
    epsilon: float = 0.2
    decay: float = 0.95


class Arm(Struct, frozen=True):
    """What is known of one endpoint.

    `gain` is the decayed sum of e^r - 1, `weight` the equally decayed count of its rewards; `submitted` counts
    requests that went out, `completed` rewards that came in; `costs` the latest costs of a candidate, any unit that
    all endpoints share.
    """

    name: str
    gain: float = 0.0
    weight: float = 0.0
    submitted: int = 0
    completed: int = 0
    costs: tuple[float, ...] = ()

    @property
    def pulls(self) -> int:
        """Those in flight count too, so that an idle second endpoint is not overlooked while answers are awaited."""
        return max(self.submitted, self.completed)

    @property
    def mean(self) -> float:
        """Decayed mean of e^r - 1."""
        return self.gain / self.weight if self.weight > 0.0 else 0.0

    def asked(self) -> Arm:
        return replace(self, submitted=self.submitted + 1)

    def paid(self, improvement: float, cost: float | None, decay: float) -> Arm:
        """After one judged candidate: `improvement` is r (negative counts as 0), `cost` None where none is known."""
        r = max(0.0, improvement) if math.isfinite(improvement) else 0.0
        return replace(
            self,
            # An overflow would make one lucky candidate decide for ever; e^20 is far beyond any kernel.
            gain=self.gain * decay + math.expm1(min(r, 20.0)),
            weight=self.weight * decay + 1.0,
            completed=self.completed + 1,
            costs=self.costs if cost is None or not cost >= 0.0 else (*self.costs, cost)[-COSTS_KEPT:],
        )


def lower_cost(arm: Arm) -> float | None:
    """Lower confidence bound of the mean cost: mean - standard error, at least a tenth of the mean; None = unknown."""
    if not arm.costs:
        return None
    mean = math.fsum(arm.costs) / len(arm.costs)
    if len(arm.costs) < 2:
        return mean
    error = statistics.stdev(arm.costs) / math.sqrt(len(arm.costs))
    return max(mean - error, mean * 0.1)


def cheapness(arms: Sequence[Arm], power: float) -> tuple[float, ...]:
    """`q^p` divided by its largest value; q = median cost over all / lower bound of the arm's own. 1 where unknown."""
    bounds = [lower_cost(arm) for arm in arms]
    known = [b for b in bounds if b is not None and b > 0.0]
    if not known:
        return (1.0,) * len(arms)
    middle = statistics.median(known)
    # An endpoint without a price costs nothing; a tenth of the cheapest stands for it, to keep the quotient finite.
    floor = max(min(known) * 0.1, sys.float_info.min)
    paid = [max(middle if b is None else b, floor) for b in bounds]
    # The median cancels where the largest becomes 1; dividing the small by the large can't overflow.
    least = min(paid)
    return tuple((least / p) ** power for p in paid)


def scores(arms: Sequence[Arm], settings: BanditSettings) -> tuple[float, ...]:
    """`(1-k)(r̄ + c sqrt(2 ln t / n)) + k q^p`, r̄ scaled by the largest mean, t all pulls; infinite where n = 0."""
    total = sum(arm.pulls for arm in arms)
    top = max((arm.mean for arm in arms), default=0.0)
    cheap = cheapness(arms, settings.cost_power)
    found = []
    for arm, q in zip(arms, cheap, strict=True):
        if arm.pulls == 0:
            found.append(math.inf)
            continue
        mean = arm.mean / top if top > 0.0 else 0.0
        bonus = settings.explore * math.sqrt(2.0 * math.log(max(total, 1)) / arm.pulls)
        found.append((1.0 - settings.cost_weight) * (mean + bonus) + settings.cost_weight * q)
    return tuple(found)


def choose(arms: Sequence[Arm], settings: BanditSettings, rng: random.Random) -> int:
    """Index of the arm to ask: unseen ones first, then a uniform one with `epsilon`, else the highest score."""
    if not arms:
        raise ValueError("there is no endpoint to choose from")
    unseen = [i for i, arm in enumerate(arms) if arm.pulls == 0]
    if unseen:
        return rng.choice(unseen)
    if rng.random() < settings.epsilon:
        return rng.randrange(len(arms))
    found = scores(arms, settings)
    best = max(found)
    return rng.choice([i for i, score in enumerate(found) if score == best])


class Endpointed(Protocol):
    """A model of one endpoint that holds connections."""

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion: ...

    async def aclose(self) -> None: ...


class RoutingModel:
    """`Model` that asks one of several, by name. Whoever judged the answer tells it with `credit`.

    An endpoint that is away is passed over for the next best in the same call; only when all are away does the call
    fail. The pull counts for the endpoint that answered.
    """

    def __init__(
        self,
        models: dict[str, Endpointed],
        seed: int = 0,
        settings: BanditSettings = BanditSettings(),
    ) -> None:
        if not models:
            raise ValueError("there is no endpoint to choose from")
        self._models = models
        self._arms = {name: Arm(name) for name in models}
        self._settings = settings
        self._rng = random.Random(f"bandit:{seed}")

    @property
    def arms(self) -> tuple[Arm, ...]:
        """What is known of the endpoints, in the order of the configuration."""
        return tuple(self._arms.values())

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        """See `Model`. The completion's `endpoint` says who answered."""
        left = dict(self._arms)
        error: ModelError | None = None
        while left:
            arms = tuple(left.values())
            name = arms[choose(arms, self._settings, self._rng)].name
            del left[name]
            self._arms[name] = self._arms[name].asked()
            try:
                done = await self._models[name].complete(request, on_chunk)
            except CapReached:
                self._unask(name)
                raise
            except (ModelUnavailable, BadCredentials) as away:
                self._unask(name)
                error = _more_useful(error, away)
                if on_chunk is not None and left:
                    on_chunk("")
                continue
            except BaseException:
                self._unask(name)
                raise
            # A prompt may bring several answers, each of which is judged.
            for _ in done.choices[1:]:
                self._arms[name] = self._arms[name].asked()
            return replace(done, endpoint=name)
        assert error is not None
        raise error

    def credit(self, endpoint: str, improvement: float, cost: float | None) -> None:
        """One candidate that `endpoint` wrote was judged: r >= 0 in ln speedup over parent and baseline, and its cost.

        Names that are not known (of an earlier configuration) are ignored.
        """
        arm = self._arms.get(endpoint)
        if arm is not None:
            self._arms[endpoint] = arm.paid(improvement, cost, self._settings.decay)

    def state(self) -> bytes:
        """What was learned, by the endpoints' names. Requests in flight are forgotten: nobody waits for them later."""
        return msgspec.msgpack.encode([replace(arm, submitted=arm.completed) for arm in self._arms.values()])

    def restore(self, state: bytes) -> None:
        """Takes what was learned of endpoints that are still configured. Raises ValueError."""
        try:
            saved = msgspec.msgpack.decode(state, type=list[Arm])
        except msgspec.DecodeError as error:
            raise ValueError(f"not the state of a choice among endpoints: {error}") from None
        self._arms |= {arm.name: arm for arm in saved if arm.name in self._arms}

    async def aclose(self) -> None:
        """Closes all of them."""
        for model in self._models.values():
            await model.aclose()

    def _unask(self, name: str) -> None:
        arm = self._arms[name]
        self._arms[name] = replace(arm, submitted=max(0, arm.submitted - 1))


def _more_useful(first: ModelError | None, second: ModelError) -> ModelError:
    """One that can be waited for is better news than one that cannot; of two of those, the sooner."""
    if not isinstance(first, ModelUnavailable) or not isinstance(second, ModelUnavailable):
        return first if isinstance(first, ModelUnavailable) else second
    waits = [e.retry_after_s if e.retry_after_s is not None else math.inf for e in (first, second)]
    return first if waits[0] <= waits[1] else second
