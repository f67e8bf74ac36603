"""Whole runs with stand-ins: budgets, groups, learning, failures."""

import asyncio
from pathlib import Path

import pytest
from tests.engine.conductor.standin import Stage, StandInExecutor, endless, groups

from workbench_engine.conducting.asking import BARREN_GROUPS
from workbench_engine.conducting.judging import BROKEN_JOBS
from workbench_engine.executor import Job
from workbench_engine.exits import ExitCode
from workbench_engine.rl.reward import reward_of
from workbench_engine.tasks.contract import Task, TaskRejected
from workbench_sessions import events as ev
from workbench_sessions.events import Budget


def test_a_run_ends_exactly_at_its_evaluations(tmp_path: Path) -> None:
    stage = Stage(tmp_path, budget=Budget(evaluations=10))
    assert stage.run(endless) == ExitCode.OK
    p = stage.projection()
    assert (p.header.outcome, p.evaluations, p.counts.proposed) == ("budget", 10, 10)
    assert sorted(r.evaluation or 0 for r in p.candidates.values()) == list(range(1, 11))
    assert [len(told) for _, told in stage.policy.told] == [4, 4, 2]
    assert stage.executor.closed
    best = p.candidates[p.best or ""]
    assert best.confirmed and best.verdict == "FASTER"


def test_the_policy_is_paid_for_each_sample_in_order(tmp_path: Path) -> None:
    stage = Stage(tmp_path, confirm=False)
    stage.run(groups(["a speedup=2.0", "b verdict=WRONG", "c speedup=0.5", "d broken"]))
    _, told = stage.policy.told[0]
    assert [o.sample for o in told] == [0, 1, 2, 3]
    assert [o.correct for o in told] == [True, False, True, False]
    want = [reward_of("FASTER", 2.0), reward_of("WRONG", None), reward_of("SLOWER", 0.5), reward_of("FAILED", None)]
    assert [o.reward for o in told] == want
    (update,) = stage.of(ev.PolicyUpdated)
    assert isinstance(update, ev.PolicyUpdated)
    assert update.rewards == want and update.success_rate == 0.5 and update.loss == 0.5 and update.group == 1
    assert [r.reward for r in stage.projection().candidates.values()] == want


def test_a_lost_job_is_a_failed_candidate_and_a_warning(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert stage.run(groups(["a broken", "b speedup=2.0"])) == ExitCode.OK
    p = stage.projection()
    assert p.candidates["c00001"].verdict == "FAILED"
    assert "told to break" in p.candidates["c00001"].reason
    assert p.header.outcome == "exhausted" and p.best == "c00002"
    assert len(stage.of(ev.WarningRaised)) == 1


def test_an_executor_that_loses_everything_ends_the_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert stage.run(lambda n: [f"{n}.{i} broken" for i in range(4)]) == ExitCode.FAILED
    p = stage.projection()
    assert p.header.outcome == "failed" and "in a row" in p.header.phase_reason
    assert p.counts.failed == BROKEN_JOBS - 1


def test_nothing_is_judged_twice(tmp_path: Path) -> None:
    stage = Stage(tmp_path, confirm=False)
    stage.run(groups(["a speedup=2.0", "a   speedup=2.0 // the same", "b speedup=0.5"], ["a speedup=2.0"]))
    assert [name for name, _ in stage.executor.jobs] == ["c00001", "c00002"]
    # Every sample is paid all the same.
    assert [[o.speedup for o in told] for _, told in stage.policy.told] == [[2.0, 2.0, 0.5], [2.0]]


def test_a_policy_that_only_repeats_itself_is_exhausted(tmp_path: Path) -> None:
    stage = Stage(tmp_path, confirm=False)
    assert stage.run(lambda n: ["a speedup=0.5"]) == ExitCode.FAILED
    assert stage.projection().header.outcome == "exhausted"
    assert len(stage.policy.contexts) == BARREN_GROUPS + 1


def test_no_seconds_no_candidates(tmp_path: Path) -> None:
    stage = Stage(tmp_path, budget=Budget(seconds=0.0))
    assert stage.run(endless) == ExitCode.BUDGET
    assert stage.projection().header.outcome == "budget" and not stage.executor.jobs


def test_the_clock_ends_a_run_after_what_is_in_flight(tmp_path: Path) -> None:
    async def until_stopping(job: Job) -> None:
        if job.profile == "search":
            await stage.seen(lambda p: p.header.phase == "stopping")

    stage = Stage(tmp_path, budget=Budget(seconds=0.1), in_flight=2)
    assert stage.run(lambda n: [f"{n}.{i} speedup={2 + i}" for i in range(4)], until_stopping) == ExitCode.OK
    p = stage.projection()
    assert p.header.outcome == "budget" and p.evaluations == 2
    assert p.candidates[p.best or ""].confirmed
    assert p.spent_seconds >= 0.1


def test_jobs_overlap_up_to_the_limit_and_a_slow_one_holds_up_nobody(tmp_path: Path) -> None:
    async def slow(job: Job) -> None:
        if job.candidate == "c00001":
            await stage.seen(lambda p: p.evaluations >= 7)

    stage = Stage(tmp_path, in_flight=3, confirm=False, budget=Budget(evaluations=12))
    assert stage.run(endless, slow) == ExitCode.OK
    assert stage.executor.most_running == 3
    order = [e.group for e in stage.of(ev.PolicyUpdated) if isinstance(e, ev.PolicyUpdated)]
    assert order[0] != 1 and sorted(order) == [1, 2, 3]


@pytest.mark.parametrize(("staleness", "late"), [(0, 0), (1, 1)])
def test_how_far_proposals_may_be_ahead_of_learning(tmp_path: Path, staleness: int, late: int) -> None:
    stage = Stage(tmp_path, staleness=staleness, confirm=False, budget=Budget(evaluations=16))
    stage.run(endless)
    proposed = [e for e in stage.of(ev.CandidateProposed) if isinstance(e, ev.CandidateProposed)]
    behind = [(e.group or 0) - 1 - (e.origin.version or 0) for e in proposed]
    assert max(behind) == late and stage.projection().evaluations == 16


def test_exemplars_and_lineage_are_what_the_proposal_was_made_from(tmp_path: Path) -> None:
    def made(patch: str | None) -> list[ev.CandidateProposed]:
        folder = tmp_path / str(patch)
        folder.mkdir()
        stage = Stage(folder, confirm=False, in_flight=1, group_size=2)
        stage.run(groups(["a speedup=0.5", "b speedup=2.0"], ["c speedup=0.1"], ["d speedup=1.0"]), patch=patch)
        assert [s.speedup for s in stage.policy.contexts[2].exemplars] in ([0.5, 2.0], [0.1, 2.0], [0.1, 0.5])
        return [e for e in stage.of(ev.CandidateProposed) if isinstance(e, ev.CandidateProposed)]

    last = made("contrast")[-1]
    assert [x.role for x in last.exemplars] == ["slow", "fast"]
    assert last.exemplars[0].score < last.exemplars[1].score
    assert last.parents == [last.exemplars[1].candidate] and last.generation >= 1
    blind = made(None)[-1]
    assert (blind.parents, blind.exemplars, blind.generation) == ([], [], 0)


def test_a_quick_look_must_promise_almost_the_best(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1, promising=0.9)
    stage.run(groups(["a speedup=2.0"], ["b speedup=0.5"]))
    asked = {(j.candidate, j.profile): j.promising_above for j in stage.executor.asked}
    assert asked["c00001", "search"] == 1.0
    assert asked["c00002", "search"] == pytest.approx(1.8)


def test_migrations_are_recorded(tmp_path: Path) -> None:
    stage = Stage(tmp_path, islands=2, migration_interval=2, budget=Budget(evaluations=24))
    stage.run(endless)
    moved = [e for e in stage.of(ev.IslandMigrated) if isinstance(e, ev.IslandMigrated)]
    assert moved and all(e.source != e.target for e in moved)
    assert {r.island for r in stage.projection().candidates.values()} == {0, 1}


class Lacking(StandInExecutor):
    """Cannot start."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def start(self, emit: object) -> Task:
        raise self._error


def test_a_machine_that_lacks_something(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    lacking = Lacking(OSError("no compiler; remedy: apt install g++"))
    assert stage.run(endless, executor=lacking) == ExitCode.ENVIRONMENT
    (warning,) = stage.of(ev.WarningRaised)
    assert isinstance(warning, ev.WarningRaised)
    assert (warning.text, warning.remedy) == ("no compiler", "apt install g++")
    p = stage.projection()
    assert p.header.outcome == "failed" and p.header.closed and p.header.task is not None
    assert lacking.closed


def test_a_session_that_could_not_start_is_opened_whole_later(tmp_path: Path) -> None:
    stage = Stage(tmp_path, budget=Budget(evaluations=4))
    stage.run(endless, executor=Lacking(OSError("no compiler")))
    first = stage.projection().header
    assert first.task is not None and first.task.dims == {}
    assert stage.run(endless) == ExitCode.OK
    header = stage.projection().header
    assert header.task is not None and header.task.dims == {"rows": 4}
    assert header.session_id == first.session_id and header.sandbox_level == "stand-in"


def test_a_task_that_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    refused = Lacking(TaskRejected("standin.py: its output is constant; make it depend on an input"))
    assert stage.run(endless, executor=refused) == ExitCode.USAGE
    assert "constant" in stage.projection().header.phase_reason


def test_nothing_correct_within_the_budget(tmp_path: Path) -> None:
    stage = Stage(tmp_path, budget=Budget(evaluations=4))
    assert stage.run(lambda n: [f"{n}.{i} verdict=WRONG" for i in range(4)]) == ExitCode.BUDGET


def test_the_policy_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    """A policy call runs on another thread: while it waits, the engine still answers."""
    stage = Stage(tmp_path, budget=Budget(evaluations=2))
    loops = set()

    def script(n: int) -> list[str]:
        loops.add(asyncio.get_running_loop())
        return [f"{n}.{i} speedup=1.0" for i in range(2)]

    async def before(job: Job) -> None:
        assert asyncio.get_running_loop() not in loops

    stage.run(script, before)
    assert len(loops) == 1
