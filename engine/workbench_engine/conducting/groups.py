"""Groups of proposals between their proposal and the learning step, and what of them must survive a crash."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from msgspec import Struct

from workbench_engine.conducting.archive import failed_stage
from workbench_engine.conducting.evaluation import CORRECT
from workbench_engine.policies.contract import Context, Outcome, Update
from workbench_sessions.events import DOES_NOT_LEARN, PolicyUpdated
from workbench_sessions.projection import Candidate, Details

STATE_KEY = "conductor"


class Member(Struct, frozen=True):
    """One sample of a group. A duplicate names the earlier candidate, whose reward it shares."""

    candidate: str
    sample: int | None


class Group(Struct, frozen=True):
    context: Context
    members: tuple[Member, ...]

    @property
    def number(self) -> int:
        return self.context.group


class Saved(Struct, frozen=True, tag="conductor/1"):
    """Kept beside the log. It is stored before the events it goes with, so it is never behind them.

    `last` is the learning step that the policy's state already contains: if the log lacks it, it is added there.
    """

    groups: int = 0
    open: tuple[Group, ...] = ()
    policy: bytes = b""
    last: PolicyUpdated | None = None


def encode_saved(saved: Saved) -> bytes:
    return msgspec.msgpack.encode(saved)


def decode_saved(state: bytes | None) -> Saved | None:
    """None when there is none or it is not readable."""
    try:
        return msgspec.msgpack.decode(state, type=Saved) if state is not None else None
    except msgspec.DecodeError:
        return None


def survivors(groups: tuple[Group, ...], rows: Mapping[str, Candidate], learned: set[int]) -> tuple[Group, ...]:
    """Open groups after a crash: those whose proposals reached the log and that were not learned from."""
    return tuple(g for g in groups if g.number not in learned and all(m.candidate in rows for m in g.members))


def complete(group: Group, rows: Mapping[str, Candidate]) -> bool:
    """Whether every member has been judged."""
    return all(rows[m.candidate].verdict is not None for m in group.members)


def outcomes(
    group: Group, rows: Mapping[str, Candidate], details: Mapping[str, Details] = MappingProxyType({})
) -> list[Outcome]:
    """What the policy is told, in the order of the proposals. The group must be complete."""
    told = []
    for member in group.members:
        row = rows[member.candidate]
        correct = row.verdict in CORRECT
        reward = row.reward if row.reward is not None else math.nan
        known = details.get(row.id, Details())
        told.append(
            Outcome(
                member.sample,
                reward,
                correct,
                row.speedup if correct else None,
                row.id,
                failed_stage(row, known),
                known.build_log or known.feedback or row.reason,
            )
        )
    return told


def policy_updated(
    group: Group, told: list[Outcome], update: Update | None, step: int, evaluations: int, best: float | None
) -> PolicyUpdated:
    """The event of one finished group; a policy that does not learn gets one too, for the curves of its rewards."""
    known = [o.reward for o in told if math.isfinite(o.reward)]
    mean = math.fsum(known) / max(1, len(known))
    std = math.sqrt(math.fsum((r - mean) ** 2 for r in known) / max(1, len(known)))
    # A sample without a reward taught nothing, as one at the mean would have.
    rewards = [o.reward if math.isfinite(o.reward) else mean for o in told]
    done = update or Update(step=step, advantages=(), skipped=DOES_NOT_LEARN)
    return PolicyUpdated(
        step=done.step,
        group=group.number,
        evaluations=evaluations,
        candidates=[m.candidate for m in group.members],
        rewards=rewards,
        advantages=list(done.advantages),
        group_mean=mean,
        group_std=std,
        success_rate=sum(o.correct for o in told) / len(told),
        best=best,
        loss=done.loss,
        entropy=done.entropy,
        kl=done.kl,
        grad_norm=done.grad_norm,
        version=done.version,
        skipped=done.skipped,
    )
