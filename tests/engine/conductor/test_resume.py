"""Engines that die: nothing is lost, nothing is judged twice, and the next one ends the run."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.engine.conductor import standin
from tests.engine.conductor.standin import Stage

from workbench_engine.exits import ExitCode
from workbench_sessions import events as ev
from workbench_sessions.commands import Stop
from workbench_sessions.errors import SessionError, SessionFull
from workbench_sessions.events import Budget
from workbench_sessions.log import SessionReader, SessionWriter

BUDGET = 120


def start(stage: Stage) -> subprocess.Popen[str]:
    """An engine process with stand-ins."""
    return subprocess.Popen(
        [sys.executable, standin.__file__, str(stage.path)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(standin.__file__).parents[3])},
        start_new_session=True,
    )


def head(stage: Stage) -> int:
    try:
        with SessionReader(stage.path) as reader:
            return reader.head_seq()
    except SessionError:
        return 0


def wait_for(stage: Stage, process: subprocess.Popen[str], seq: int) -> None:
    """Until the session holds `seq` events or the process has ended."""
    deadline = time.monotonic() + 20.0
    while head(stage) < seq and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)


def check_invariants(stage: Stage) -> None:
    events = stage.events()
    numbers = [e.evaluation for e in events if isinstance(e, ev.VerdictReached) and e.evaluation is not None]
    assert numbers == list(range(1, len(numbers) + 1))
    judged = Counter(e.candidate for e in events if isinstance(e, ev.VerdictReached) and e.evaluation is not None)
    assert max(judged.values(), default=0) <= 1
    proposed = [e.candidate for e in events if isinstance(e, ev.CandidateProposed)]
    assert proposed == [f"c{i:05d}" for i in range(1, len(proposed) + 1)]
    hashes = [e.source_sha256 for e in events if isinstance(e, ev.CandidateProposed)]
    assert len(set(hashes)) == len(hashes)
    learned = Counter(e.group for e in events if isinstance(e, ev.PolicyUpdated))
    assert max(learned.values(), default=0) <= 1
    assert sum(isinstance(e, ev.SessionOpened) for e in events) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random_moments_it_resumes_and_ends(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    stage = Stage(tmp_path, budget=Budget(evaluations=BUDGET), group_size=8, islands=2)
    kills = 0
    for _ in range(3):
        process = start(stage)
        wait_for(stage, process, head(stage) + rng.randrange(1, 400))
        time.sleep(rng.random() * 0.01)
        if process.poll() is None:
            kills += 1
            process.kill()
        process.communicate()
        before = head(stage)
        check_invariants(stage)
    process = start(stage)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == ExitCode.OK, said
    check_invariants(stage)
    p = stage.projection()
    assert kills and head(stage) > before
    assert (p.header.outcome, p.evaluations, p.counts.done, p.counts.proposed) == ("budget", BUDGET, BUDGET, BUDGET)
    assert p.candidates[p.best or ""].confirmed
    resumed = [e.resumed for e in stage.events() if isinstance(e, ev.EngineStarted)]
    assert resumed[0] is False and all(resumed[1:])
    # Every group that was proposed was learned from, once.
    assert len(p.policy_steps) == len({r.group for r in p.candidates.values()})


@pytest.mark.slow
def test_killed_twenty_times_it_resumes_and_ends(tmp_path: Path) -> None:
    rng = random.Random(20)
    stage = Stage(tmp_path, budget=Budget(evaluations=600), group_size=8, islands=2)
    for _ in range(20):
        process = start(stage)
        wait_for(stage, process, head(stage) + rng.randrange(1, 200))
        time.sleep(rng.random() * 0.02)
        assert process.poll() is None, process.communicate()[1]
        process.kill()
        process.communicate()
        check_invariants(stage)
    process = start(stage)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == ExitCode.OK, said
    check_invariants(stage)
    p = stage.projection()
    assert (p.header.outcome, p.evaluations, p.counts.proposed) == ("budget", 600, 600)
    assert len(p.policy_steps) == len({r.group for r in p.candidates.values()})


@pytest.mark.parametrize("kind", [ev.CandidateProposed, ev.PolicyUpdated, ev.VerdictReached])
def test_dying_between_the_state_and_the_log(
    tmp_path: Path, kind: type[ev.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third fact of a kind is never stored, though the state that goes with it is."""
    stage = Stage(tmp_path, budget=Budget(evaluations=16), in_flight=1, confirm=False)
    real = SessionWriter.append
    left = {"n": 3, "dead": False}

    def append(self: SessionWriter, events: list[ev.Event]) -> object:
        left["n"] -= any(isinstance(e, kind) for e in events)
        left["dead"] = left["dead"] or left["n"] == 0
        if left["dead"]:
            raise SessionFull(self.path)
        return real(self, events)

    monkeypatch.setattr(SessionWriter, "append", append)
    assert stage.run(standin.endless) == ExitCode.ENVIRONMENT
    before = stage.policy.version
    monkeypatch.undo()
    assert stage.run(standin.endless) == ExitCode.OK
    check_invariants(stage)
    p = stage.projection()
    assert p.evaluations == 16
    # The policy learned from each group that was stored once, neither twice nor never.
    assert len(p.policy_steps) == len({r.group for r in p.candidates.values()})
    assert stage.policy.version == len(p.policy_steps) and before <= 3


def test_two_engines_refuse(tmp_path: Path) -> None:
    stage = Stage(tmp_path, budget=Budget(evaluations=100_000))
    first = start(stage)
    wait_for(stage, first, 10)
    second = start(stage)
    said = second.communicate(timeout=20)[1]
    first.kill()
    first.communicate()
    assert second.returncode == ExitCode.USAGE
    assert f"pid {first.pid}" in said and "attach" in said


def test_a_signal_ends_it_cleanly_and_it_can_be_resumed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, budget=Budget(evaluations=60))
    process = start(stage)
    wait_for(stage, process, 60)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == ExitCode.INTERRUPTED
    p = stage.projection()
    assert (p.header.outcome, p.header.phase_reason) == ("stopped", "interrupted by SIGTERM")
    stage.send(Stop())
    process = start(stage)
    process.communicate(timeout=20)
    assert process.returncode == ExitCode.OK
    check_invariants(stage)
    (refused,) = stage.of(ev.CommandRefused)
    assert isinstance(refused, ev.CommandRefused) and "gone" in refused.reason
    assert stage.projection().evaluations == 60


def test_a_larger_budget_goes_on_where_it_ended(tmp_path: Path) -> None:
    from workbench_sessions.commands import SetBudget

    stage = Stage(tmp_path, budget=Budget(evaluations=8))
    stage.run(standin.endless)
    stage.send(SetBudget(Budget(evaluations=20)))
    stage.run(standin.endless)
    check_invariants(stage)
    p = stage.projection()
    assert p.evaluations == 20 and p.header.outcome == "budget"
    assert stage.policy.group == 5 and stage.policy.version == 5


def test_a_lost_state_is_no_loss_of_the_run(tmp_path: Path) -> None:
    import sqlite3

    from workbench_sessions.commands import SetBudget

    stage = Stage(tmp_path, budget=Budget(evaluations=8))
    stage.run(standin.endless)
    with sqlite3.connect(stage.path) as connection:
        connection.execute("UPDATE state SET value = x'c1'")
    connection.close()
    stage.send(SetBudget(Budget(evaluations=16)))
    assert stage.run(standin.endless) == ExitCode.OK
    check_invariants(stage)
    assert stage.projection().evaluations == 16
    assert any("cannot be read" in e.text for e in stage.of(ev.WarningRaised) if isinstance(e, ev.WarningRaised))
