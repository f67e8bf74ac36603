"""What a judged candidate is paid: ours from its verdict, CUDA-L1's from its pairs, measured twice where needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from workbench_engine.conducting.evaluation import CORRECT, Evaluated, evaluate
from workbench_engine.executor import Executor, Job
from workbench_engine.policies.contract import Outcome
from workbench_engine.rl import cuda_l1_reward
from workbench_engine.rl.cuda_l1_reward import Score
from workbench_engine.rl.reward import reward_of
from workbench_sessions.events import Event, PairsTimed
from workbench_sessions.projection import Candidate

RewardName = Literal["workbench", "cuda-l1"]
Emit = Callable[[Event], None]


class Paid(Struct, frozen=True):
    """`reward` None: the measurement does not count, and nothing is learned from this candidate."""

    done: Evaluated
    reward: float | None


class Ratios:
    """Hears the facts of one job and keeps t_ref / t_cand of its pairs, without those of several threads."""

    def __init__(self, candidate: str) -> None:
        self._candidate = candidate
        self.ratios: list[float] = []
        self.device = ""

    def heard(self, emit: Emit) -> Emit:
        """`emit` that also listens."""

        def hear(event: Event) -> None:
            if isinstance(event, PairsTimed) and event.candidate == self._candidate and event.threads == 1:
                self.device = event.device
                pairs = zip(event.reference_s, event.candidate_s, strict=True)
                self.ratios += [reference / candidate for reference, candidate in pairs if candidate > 0.0]
            emit(event)

        return hear


async def judge(
    reward: RewardName, executor: Executor, job: Job, emit: Emit, backstop_s: float, best: float | None
) -> Paid:
    """Evaluates `job` and says what it is paid. `best`: the best speedup of the run so far, a ratio.

    With "cuda-l1" a score that needs it is measured a second time, on another device where the executor has one.
    """
    first = Ratios(job.candidate)
    if reward == "cuda-l1":
        # A hopeless candidate is timed to the end too: its score needs all buckets.
        job = replace(job, promising_above=0.0)
    done = await evaluate(executor, job, first.heard(emit), backstop_s)
    if reward == "workbench":
        return Paid(done, reward_of(done.verdict.verdict, done.verdict.speedup))
    if done.verdict.verdict not in CORRECT or done.broken:
        return Paid(done, None if done.broken else cuda_l1_reward.FAILED)
    score = cuda_l1_reward.score_of(first.ratios)
    if score.value is not None and cuda_l1_reward.needs_second(score.value, best):
        second = Ratios(job.candidate)
        again = replace(job, other_than=first.device)
        repeated = await evaluate(executor, again, second.heard(emit), backstop_s)
        score = _settled(score.value, repeated, second, first.device)
    reason = "; ".join(part for part in (done.verdict.reason, score.reason) if part)
    return Paid(replace(done, verdict=replace(done.verdict, reason=reason)), score.value)


def _settled(first: float, repeated: Evaluated, second: Ratios, device: str) -> Score:
    other = second.device or "no device"
    where = f"on {other}" if other != device else f"on {device} in a fresh process (the run has no other device)"
    if repeated.verdict.verdict not in CORRECT:
        failed = Score(None, f"{repeated.verdict.verdict} {repeated.verdict.reason}".rstrip())
        return cuda_l1_reward.settle(first, failed, where)
    return cuda_l1_reward.settle(first, cuda_l1_reward.score_of(second.ratios), where)


def unjudged(reward: RewardName) -> float:
    """What a candidate is paid that never reached the executor."""
    return cuda_l1_reward.FAILED if reward == "cuda-l1" else reward_of("FAILED", None)


def taught(reward: RewardName, told: list[Outcome], rows: Iterable[Candidate]) -> list[Outcome]:
    """What the policy is given: CUDA-L1's scores are smoothed over the successful ones of the session so far."""
    if reward == "workbench":
        return told
    scores = [row.reward for row in rows if row.verdict in CORRECT and row.reward is not None]
    return [
        replace(o, reward=cuda_l1_reward.smoothed(o.reward, scores)) if math.isfinite(o.reward) else o for o in told
    ]
