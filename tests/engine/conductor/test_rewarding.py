"""What a candidate is paid, and how CUDA-L1's second measurement comes about, with a stand-in for the executor."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import pytest

from workbench_engine.conducting.rewarding import Paid, judge, taught, unjudged
from workbench_engine.executor import Job, JobResult
from workbench_engine.policies.contract import Outcome
from workbench_engine.rl.reward import reward_of
from workbench_sessions.events import Event, PairsTimed, Verdict, VerdictReached


class Timed:
    """Answers job after job with the series it was given: (device, verdict, ratio of every pair)."""

    def __init__(self, *answers: tuple[str, Verdict, float]) -> None:
        self._answers = list(answers)
        self.asked: list[Job] = []

    async def run(self, job: Job, emit: Callable[[Event], None]) -> JobResult:
        self.asked.append(job)
        device, verdict, ratio = self._answers.pop(0)
        emit(PairsTimed(job.candidate, device, "search", [ratio] * 10, [1.0] * 10))
        emit(PairsTimed(job.candidate, device, "threads", [9.0] * 10, [1.0] * 10, threads=2))
        emit(PairsTimed("another", device, "search", [5.0] * 10, [1.0] * 10))
        emit(VerdictReached(job.candidate, verdict, speedup=ratio))
        return JobResult(job.candidate, verdict, ratio, "")

    async def aclose(self) -> None:
        return None


def paid(executor: Timed, reward: str = "cuda-l1", best: float | None = None) -> tuple[Paid, list[Event]]:
    heard: list[Event] = []
    job = Job("c1", "kernel", "text", promising_above=1.5)
    done = asyncio.run(judge(reward, executor, job, heard.append, 10.0, best))  # type: ignore[arg-type]
    return done, heard


def test_ours_is_paid_from_the_verdict_and_never_measures_twice() -> None:
    executor = Timed(("cpu0", "FASTER", 9.0))
    done, _ = paid(executor, "workbench")
    assert done.reward == pytest.approx(math.log(9.0))
    assert [job.promising_above for job in executor.asked] == [1.5]


def test_a_modest_score_is_paid_at_once_from_its_own_single_threaded_pairs() -> None:
    executor = Timed(("cpu0", "FASTER", 1.118))
    done, heard = paid(executor)
    assert done.reward == 1.11
    assert done.done.verdict.reason == ""
    assert [job.promising_above for job in executor.asked] == [0.0]
    assert len(heard) == 3


def test_a_far_score_is_confirmed_on_another_device() -> None:
    executor = Timed(("cpu0", "FASTER", 4.0), ("cpu1", "FASTER", 3.8))
    done, heard = paid(executor)
    assert done.reward == 3.8
    assert executor.asked[1].other_than == "cpu0" and executor.asked[1].promising_above == 0.0
    assert "again on cpu1: 3.80×" in done.done.verdict.reason
    # The verdict is that of the first measurement, and there is only one.
    assert done.done.verdict.speedup == 4.0
    assert not any(isinstance(event, VerdictReached) for event in heard)


def test_without_another_device_it_says_so() -> None:
    done, _ = paid(Timed(("cpu0", "FASTER", 4.0), ("cpu0", "FASTER", 4.1)))
    assert done.reward == 4.0
    assert "in a fresh process (the run has no other device)" in done.done.verdict.reason


def test_devices_that_disagree_leave_no_reward() -> None:
    done, _ = paid(Timed(("cpu0", "FASTER", 4.0), ("cpu1", "FASTER", 3.5)))
    assert done.reward is None
    assert "rejected" in done.done.verdict.reason


def test_a_jump_over_the_best_is_confirmed_too() -> None:
    executor = Timed(("cpu0", "FASTER", 2.5), ("cpu1", "WRONG", 1.0))
    done, _ = paid(executor, best=1.2)
    assert done.reward is None and "WRONG" in done.done.verdict.reason
    assert len(executor.asked) == 2


def test_a_wrong_answer_scores_nothing() -> None:
    assert paid(Timed(("cpu0", "WRONG", 1.0)))[0].reward == 0.0
    assert unjudged("cuda-l1") == 0.0
    assert unjudged("workbench") == reward_of("FAILED", None)


def test_a_lost_job_is_not_the_candidates_fault() -> None:
    class Broken(Timed):
        async def run(self, job: Job, emit: Callable[[Event], None]) -> JobResult:
            raise OSError("gone")

    done, _ = paid(Broken())
    assert done.reward is None and done.done.broken


def test_only_cuda_l1_smooths_and_what_has_no_reward_keeps_none() -> None:
    told = [Outcome(1, 1.4, True, 1.4), Outcome(2, math.nan, True, 1.0)]
    assert taught("workbench", told, []) == told
    smooth = taught("cuda-l1", told, [])
    assert smooth[0].reward == pytest.approx(0.4)
    assert math.isnan(smooth[1].reward)
