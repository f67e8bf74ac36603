"""The embedded default: a small policy over a design space, trained on the spot with GRPO on refereed rewards.

It is contrastive as CUDA-L1's stage 3 is: each group is conditioned on a slow and a fast exemplar, drawn by the
conductor from score buckets (`rl.contrastive`). What a language model would read from a prompt, the network gets as the
exemplars' design points and ln scores. An honest name is "search with a learned sampler".
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import msgspec
import numpy as np
import torch
from msgspec import Struct
from torch import Tensor

from workbench_engine.policies.adam import Adam
from workbench_engine.policies.additive import ValueEffects
from workbench_engine.policies.contract import Context, Outcome, Proposal, Scored, Update
from workbench_engine.policies.network import Conditions, Network, NetworkSettings, chosen
from workbench_engine.policies.proposing import Indices, proposal_of, unseen_near, usable
from workbench_engine.policies.saved import SavedGroup, SavedPolicy, SavedSample, load, pack, save, unpack
from workbench_engine.rl.advantage import Estimator, advantages, is_flat
from workbench_engine.rl.contrastive import score_of
from workbench_engine.rl.grpo import LossSettings, LossTerms, entropy, grpo_loss
from workbench_engine.tasks.design import DesignSpace
from workbench_sessions.events import Origin


class DesignSpaceSettings(Struct, frozen=True):
    """All hyper-parameters. Rates are Adam's; `window` is how many recent groups one learning step goes over."""

    network: NetworkSettings = NetworkSettings()
    loss: LossSettings = LossSettings(kl_weight=0.002, entropy_weight=0.005)
    estimator: Estimator = "entropic"
    rate_logits: float = 0.25
    rate_gates: float = 0.05
    rate_network: float = 3e-3
    clip_norm: float = 1.0
    passes: int = 4
    window: int = 6
    decay: float = 0.8
    ridge: float = 2.0
    thompson: float = 0.7
    resamples: int = 32


class Condition(NamedTuple):
    """What one sample was conditioned on, as arrays: exemplar indices [D], scores [2], effects [D, V]."""

    slow: np.ndarray
    fast: np.ndarray
    scores: np.ndarray
    effects: np.ndarray


class Sample(NamedTuple):
    """One proposal as the trainer remembers it; `logp_old` is ln pi at the time it was drawn."""

    indices: Indices
    logp_old: float
    condition: Condition


class Group(NamedTuple):
    """A finished group: its samples, their rewards, and the advantages that follow from these."""

    samples: list[Sample]
    rewards: list[float]
    advantages: tuple[float, ...]


class BestOfNPolicy:
    """The sampler before any training: initial network, no exemplars, no learning. See `baselines`."""

    name = "best-of-n"

    def __init__(self, space: DesignSpace, seed: int, settings: DesignSpaceSettings = DesignSpaceSettings()) -> None:
        self._space = space
        self._settings = settings
        self._network = Network(space.dimensions, settings.network, seed)
        self._rng = random.Random(seed)
        self._seen: set[Indices] = set()
        self._samples = 0
        self._version = 0

    async def propose(self, context: Context, n: int) -> list[Proposal]:
        if n < 1:
            return []
        conditions = self._conditions(context, n)
        log_p = self._log_p(conditions)
        cumulative = np.cumsum(np.exp(log_p.numpy().astype(np.float64)), axis=2)
        proposals: list[Proposal] = []
        for i, condition in enumerate(conditions):
            indices = self._draw(cumulative[i])
            if indices is None:
                break
            self._seen.add(indices)
            logp = float(chosen(log_p[i : i + 1], torch.tensor([indices])))
            origin = Origin(policy=self.name, patch=self._patch(condition), version=self._version)
            note = self._note(indices, condition)
            proposals.append(proposal_of(self._space, indices, origin, self._samples, note))
            self._remember(self._samples, Sample(indices, logp, condition))
            self._samples += 1
        return proposals

    async def learn(self, context: Context, outcomes: list[Outcome]) -> Update | None:
        return None

    def state(self) -> bytes:
        return save(self._saved())

    def restore(self, state: bytes) -> None:
        saved = load(state, self.name, self._space)
        self._rng.setstate((saved.rng[0], saved.rng[1], saved.rng[2]))
        self._seen = set(saved.seen)
        self._samples, self._version = saved.samples, saved.version

    def _saved(self) -> SavedPolicy:
        version, words, gauss = self._rng.getstate()
        return SavedPolicy(
            policy=self.name,
            task=self._space.task,
            sizes=[len(d.values) for d in self._space.dimensions],
            rng=(version, tuple(words), gauss),
            seen=sorted(self._seen),
            samples=self._samples,
            version=self._version,
        )

    def _conditions(self, context: Context, n: int) -> list[Condition]:
        """What each of the `n` samples of a group is conditioned on: here on nothing."""
        d, v = self._network.dimensions, self._network.width
        nothing = np.full(d, -1, dtype=np.int64)
        return [Condition(nothing, nothing, np.zeros(2, dtype=np.float32), np.zeros((d, v), dtype=np.float32))] * n

    def _patch(self, condition: Condition) -> str:
        return "sample"

    def _note(self, indices: Indices, condition: Condition) -> str:
        return ""

    def _remember(self, number: int, sample: Sample) -> None:
        """A policy that does not learn forgets."""

    def _log_p(self, conditions: list[Condition]) -> Tensor:
        with torch.no_grad():
            return self._network.log_probabilities(batch(conditions))

    def _draw(self, cumulative: np.ndarray) -> Indices | None:
        indices: Indices = ()
        for _ in range(self._settings.resamples):
            indices = tuple(
                min(int(np.searchsorted(row, self._rng.random() * row[-1], side="right")), len(d.values) - 1)
                for row, d in zip(cumulative, self._space.dimensions, strict=True)
            )
            if indices not in self._seen:
                return indices
        # A policy that has become sharp keeps drawing what it knows: take the nearest new neighbour instead.
        return unseen_near(self._space, indices, self._seen, self._rng)


class DesignSpacePolicy(BestOfNPolicy):
    """The trained policy. `learn` costs `passes` gradient steps over the last `window` groups."""

    name = "design-space"

    def __init__(self, space: DesignSpace, seed: int, settings: DesignSpaceSettings = DesignSpaceSettings()) -> None:
        super().__init__(space, seed, settings)
        rates = dict.fromkeys(self._network.parameters, settings.rate_network)
        rates["base"] = settings.rate_logits
        rates |= dict.fromkeys(("copy", "near", "contrast", "trust"), settings.rate_gates)
        self._adam = Adam(self._network.parameters, rates)
        self._initial = {name: p.detach().clone() for name, p in self._network.parameters.items()}
        self._pending: dict[int, Sample] = {}
        self._groups: list[Group] = []
        self._tried: list[tuple[Indices, float]] = []
        self._step = 0

    async def learn(self, context: Context, outcomes: list[Outcome]) -> Update | None:
        """One learning step. Outcomes of samples that are not this policy's (a person's, a lost run's) are left out."""
        samples: list[Sample] = []
        rewards: list[float] = []
        places: list[int] = []
        for place, outcome in enumerate(outcomes):
            sample = self._pending.pop(outcome.sample, None) if outcome.sample is not None else None
            if sample is not None and math.isfinite(outcome.reward):
                samples.append(sample)
                rewards.append(outcome.reward)
                places.append(place)
        self._step += 1
        self._tried += [(s.indices, r) for s, r in zip(samples, rewards, strict=True)]
        if not samples:
            return Update(
                self._step, (0.0,) * len(outcomes), version=self._version, skipped="no samples of this policy"
            )
        gained = advantages(rewards, self._settings.estimator)
        self._groups = [*self._groups, Group(samples, rewards, gained)][-self._settings.window :]
        spread = [0.0] * len(outcomes)
        for place, value in zip(places, gained, strict=True):
            spread[place] = value
        useful = [g for g in self._groups if not is_flat(g.rewards)]
        if not useful or is_flat(rewards):
            return Update(self._step, tuple(spread), version=self._version, skipped="flat group: all rewards are equal")
        terms, norm = self._train(useful)
        if terms is None:
            return Update(self._step, tuple(spread), version=self._version, skipped="gradient is not finite")
        self._version += 1
        now = batch([s.condition for s in samples])
        with torch.no_grad():
            log_p = self._network.log_probabilities(now)
            log_ref = self._network.log_probabilities(now, self._initial)
            nats = float(entropy(log_p).sum(1).mean())
            gap = torch.where(log_p > float("-inf"), log_p - log_ref, torch.zeros_like(log_p))
            kl = float((torch.exp(log_p) * gap).sum((1, 2)).mean())
        return Update(self._step, tuple(spread), float(terms.loss.detach()), nats, kl, norm, self._version)

    def _train(self, groups: list[Group]) -> tuple[LossTerms | None, float | None]:
        s = self._settings
        samples = [x for g in groups for x in g.samples]
        given = batch([x.condition for x in samples])
        indices = torch.tensor([x.indices for x in samples])
        logp_old = torch.tensor([x.logp_old for x in samples])
        gained = torch.tensor([a for g in groups for a in g.advantages])
        age = [s.decay ** (len(groups) - 1 - i) for i, g in enumerate(groups) for _ in g.samples]
        with torch.no_grad():
            logp_ref = chosen(self._network.log_probabilities(given, self._initial), indices)
        names = list(self._network.parameters)
        terms: LossTerms | None = None
        norm: float | None = None
        for _ in range(s.passes):
            log_p = self._network.log_probabilities(given)
            terms = grpo_loss(
                chosen(log_p, indices), logp_old, gained, s.loss, logp_ref, entropy(log_p).sum(1), torch.tensor(age)
            )
            gradients = torch.autograd.grad(terms.loss, [self._network.parameters[n] for n in names])
            norm = self._adam.step(dict(zip(names, gradients, strict=True)), s.clip_norm)
            if norm is None:
                return None, None
        return terms, norm

    def _conditions(self, context: Context, n: int) -> list[Condition]:
        nothing = super()._conditions(context, 1)[0]
        known = [(i, x) for x in context.exemplars if (i := self._correct(x)) is not None]
        if not known:
            known = [(i, x) for x in context.parents if (i := self._correct(x)) is not None][:1]
        fast, slow = nothing.fast, nothing.slow
        scores = np.zeros(2, dtype=np.float32)
        if known:
            fast, scores[1] = np.array(known[-1][0]), score_of(known[-1][1]) or 0.0
        if len(known) > 1:
            slow, scores[0] = np.array(known[0][0]), score_of(known[0][1]) or 0.0
        if not self._tried:
            return [Condition(slow, fast, scores, nothing.effects)] * n
        points = np.array([i for i, _ in self._tried], dtype=np.float64)
        rewards = np.array([r for _, r in self._tried])
        effects = ValueEffects(points, [len(d.values) for d in self._space.dimensions], rewards, self._settings.ridge)
        draws = np.random.default_rng(self._rng.getrandbits(64))
        return [
            Condition(slow, fast, scores, effects.draw(draws, self._settings.thompson).astype(np.float32))
            for _ in range(n)
        ]

    def _correct(self, scored: Scored) -> Indices | None:
        return usable(scored.point, self._space) if score_of(scored) is not None else None

    def _patch(self, condition: Condition) -> str:
        return "contrast" if condition.slow[0] >= 0 else "copy" if condition.fast[0] >= 0 else "sample"

    def _note(self, indices: Indices, condition: Condition) -> str:
        if condition.fast[0] < 0:
            return ""
        changed = [
            f"{d.name}={d.values[i]}"
            for d, i, j in zip(self._space.dimensions, indices, condition.fast, strict=True)
            if i != j
        ]
        return "fast exemplar with " + ", ".join(changed) if changed else "fast exemplar unchanged"

    def _remember(self, number: int, sample: Sample) -> None:
        self._pending[number] = sample

    def _saved(self) -> SavedPolicy:
        conditions: dict[int, tuple[int, Condition]] = {}

        def sample(number: int, x: Sample) -> SavedSample:
            place, _ = conditions.setdefault(id(x.condition), (len(conditions), x.condition))
            return SavedSample(number, x.indices, x.logp_old, place)

        arrays = {f"parameter.{n}": p.detach() for n, p in self._network.parameters.items()}
        arrays |= {f"mean.{n}": a for n, a in self._adam.mean.items()}
        arrays |= {f"square.{n}": a for n, a in self._adam.square.items()}
        pending = [sample(number, x) for number, x in self._pending.items()]
        groups = [SavedGroup([sample(-1, x) for x in g.samples], g.rewards) for g in self._groups]
        return msgspec.structs.replace(
            super()._saved(),
            step=self._step,
            adam_step=self._adam.step_count,
            arrays={name: pack(a.numpy()) for name, a in arrays.items()},
            conditions=[[pack(a) for a in c] for _, c in conditions.values()],
            pending=pending,
            groups=groups,
            tried=list(self._tried),
        )

    def restore(self, state: bytes) -> None:
        saved = load(state, self.name, self._space)
        # Everything is unpacked before anything is changed: a damaged state leaves the policy as it was.
        arrays = {name: torch.from_numpy(unpack(a)) for name, a in saved.arrays.items()}
        for name, p in self._network.parameters.items():
            for kind in ("parameter", "mean", "square"):
                if f"{kind}.{name}" not in arrays or arrays[f"{kind}.{name}"].shape != p.shape:
                    raise ValueError(f"state of policy {self.name!r}: {kind} {name!r} is missing or of another size")
        conditions = [Condition(*map(unpack, c)) for c in saved.conditions]

        def sample(x: SavedSample) -> Sample:
            return Sample(x.indices, x.logp_old, conditions[x.condition])

        groups = [
            Group([sample(x) for x in g.samples], g.rewards, advantages(g.rewards, self._settings.estimator))
            for g in saved.groups
        ]
        pending = {x.number: sample(x) for x in saved.pending}
        super().restore(state)
        self._groups, self._pending, self._tried = groups, pending, list(saved.tried)
        self._step, self._adam.step_count = saved.step, saved.adam_step
        with torch.no_grad():
            for name, p in self._network.parameters.items():
                p.copy_(arrays[f"parameter.{name}"])
                self._adam.mean[name].copy_(arrays[f"mean.{name}"])
                self._adam.square[name].copy_(arrays[f"square.{name}"])


def batch(conditions: list[Condition]) -> Conditions:
    """Conditions of several samples as tensors."""
    return Conditions(
        fast=torch.from_numpy(np.stack([c.fast for c in conditions])),
        slow=torch.from_numpy(np.stack([c.slow for c in conditions])),
        scores=torch.from_numpy(np.stack([c.scores for c in conditions])),
        effects=torch.from_numpy(np.stack([c.effects for c in conditions])),
    )
