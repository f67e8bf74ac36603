"""What a person may do to a running session, and what is refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.conductor.standin import Hook, Stage, StandInExecutor, endless, groups

from workbench_engine.conducting.lifecycle import Engine
from workbench_engine.executor import Job
from workbench_engine.exits import ExitCode
from workbench_sessions import events as ev
from workbench_sessions.commands import (
    Accept,
    Command,
    Pause,
    Pin,
    Reject,
    Resume,
    SetBudget,
    SetMode,
    Steer,
    Stop,
    SubmitSource,
    UndoDecision,
)
from workbench_sessions.connection import open_for_writing
from workbench_sessions.events import Budget, Event
from workbench_sessions.log import SessionWriter
from workbench_sessions.projection import Projection

Shows = Callable[[Projection], bool]


def told(stage: Stage, *steps: tuple[Command, Shows], at: str = "last") -> Hook:
    """Sends commands one after another while the candidate `at` is being judged, each until the session shows it."""

    async def before(job: Job) -> None:
        if job.text.startswith(at) and job.profile == "search":
            for command, shows in steps:
                stage.send(command)
                await stage.seen(shows)

    return before


def decision(name: str, wanted: str | None) -> Shows:
    return lambda p: p.candidates[name].decision == wanted


def refusals(stage: Stage) -> list[str]:
    return [e.reason for e in stage.of(ev.CommandRefused) if isinstance(e, ev.CommandRefused)]


def refused(stage: Stage, count: int) -> Shows:
    return lambda p: len(refusals(stage)) >= count


THREE = groups(["first speedup=2.0", "wrong verdict=WRONG", "last speedup=0.5"])


def test_accepting_writes_the_kernel_and_its_card(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1, output_dir=str(tmp_path / "out"))
    accept = Accept("c00001", reason="fast enough", person="ada")
    stage.run(THREE, told(stage, (accept, decision("c00001", "accepted"))))
    row = stage.projection().candidates["c00001"]
    kernel = tmp_path / "out" / "standin-c00001.cpp"
    assert row.accepted_path == str(kernel) and kernel.read_text() == "first speedup=2.0"
    card = json.loads(kernel.with_suffix(".json").read_text())
    assert (card["verdict"], card["speedup"], card["accepted_by"]) == ("FASTER", 2.0, "ada")
    assert (card["reason"], card["source_sha256"], card["task"]) == ("fast enough", row.source_sha256, "standin")
    assert card["sandbox_level"] == "stand-in"
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["standin-c00001.cpp", "standin-c00001.json"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (Accept("c00002"), "WRONG"),
        (Accept("c00003"), "not been judged"),
        (Accept("nobody"), "no candidate"),
        (Reject("nobody"), "no candidate"),
        (UndoDecision("c00001"), "nothing to undo"),
        (Pin("nobody"), "no candidate"),
        (Resume(), "not paused"),
        (SetMode("auto"), "auto already"),
        (SetBudget(Budget(evaluations=-1)), "negative"),
        (SubmitSource(""), "empty"),
        (SubmitSource("first speedup=2.0 // mine"), "same as c00001"),
        (SubmitSource("x speedup=1.0", kind="ranks"), "ranks"),
        (SubmitSource("x speedup=1.0", parent="nobody"), "no candidate"),
        (SubmitSource("x" * (1 << 21)), "bytes"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(tmp_path: Path, command: Command, why: str) -> None:
    stage = Stage(tmp_path, in_flight=1)
    stage.run(THREE, told(stage, (command, refused(stage, 1))))
    (reason,) = refusals(stage)
    assert why in reason
    assert stage.projection().header.outcome == "exhausted"


def test_accepting_twice_is_refused_and_a_folder_that_cannot_be_written_too(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    stage = Stage(tmp_path, in_flight=1, output_dir=str(blocked))
    stage.run(THREE, told(stage, (Accept("c00001"), refused(stage, 1))))
    assert "cannot be written" in refusals(stage)[0] and "blocked" in refusals(stage)[0]
    assert stage.projection().candidates["c00001"].decision is None


def test_a_rejected_best_is_not_best_and_undoing_brings_it_back(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1)
    best: list[str | None] = []

    def noted(p: Projection) -> bool:
        best.append(p.best)
        return True

    steps = [
        (Accept("c00001"), decision("c00001", "accepted")),
        (Reject("c00001", reason="ugly"), decision("c00001", "rejected")),
        (Pin("c00001"), noted),
        (UndoDecision("c00001"), decision("c00001", None)),
    ]
    stage.run(groups(["first speedup=2.0", "second speedup=1.5", "last speedup=0.5"]), told(stage, *steps))
    assert best == ["c00002"]
    assert stage.projection().best == "c00001"
    # Rejecting took back what accepting had written.
    assert not list((tmp_path / "s-accepted").iterdir())


def test_a_changed_file_is_left_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1, output_dir=str(tmp_path / "out"))
    kernel = tmp_path / "out" / "standin-c00001.cpp"

    def edit(p: Projection) -> bool:
        if p.candidates["c00001"].decision != "accepted":
            return False
        kernel.write_text("mine now")
        return True

    stage.run(THREE, told(stage, (Accept("c00001"), edit), (Reject("c00001"), decision("c00001", "rejected"))))
    assert kernel.read_text() == "mine now"


def test_a_rejected_one_is_no_exemplar_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1, confirm=False)
    script = groups(["first speedup=2.0", "last speedup=0.5"], ["x speedup=0.6"], ["y speedup=0.7"])
    stage.run(script, told(stage, (Reject("c00001"), decision("c00001", "rejected"))))
    # The others were proposed before: the last group's first candidate was the only one that still waited.
    context = stage.policy.contexts[3]
    assert context.exemplars
    assert "c00001" not in {s.candidate for s in (*context.exemplars, *context.parents)}


def test_pause_stops_the_search_and_its_clock(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1, confirm=False)
    paused_at: list[float] = []

    def paused(p: Projection) -> bool:
        if p.header.phase == "paused":
            paused_at.append(p.spent_seconds)
        return p.header.phase == "paused"

    async def before(job: Job) -> None:
        if job.text.startswith("last"):
            stage.send(Pause())
            await stage.seen(paused)
            stage.send(SubmitSource("mine speedup=1.2", parent="c00001", person="ada"))
            stage.send(Pause())
            await stage.seen(lambda p: p.counts.proposed == 5 and bool(refusals(stage)))
        if job.text.startswith("mine"):
            phases.append(stage.projection().header.phase)
            stage.send(Resume())

    phases: list[str] = []
    stage.run(groups(["last speedup=0.5", "a speedup=0.6", "b speedup=0.7", "c speedup=0.8"]), before)
    assert [job.text.split()[0] for job in stage.executor.asked] == ["last", "mine", "a", "b", "c"]
    assert phases == ["paused"]
    mine = next(r for r in stage.projection().candidates.values() if r.origin.policy == "person")
    assert (mine.parents, mine.generation, mine.origin.person, mine.group) == (["c00001"], 1, "ada", None)
    assert mine.verdict == "FASTER" and mine.evaluation == 2
    assert [e.phase for e in stage.of(ev.PhaseChanged) if isinstance(e, ev.PhaseChanged)] == [
        "starting",
        "running",
        "paused",
        "running",
        "stopping",
    ]


def test_stop_gives_up_what_is_in_flight(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=2)

    async def before(job: Job) -> None:
        if job.candidate == "c00003":
            stage.send(Stop(reason="enough"))
            await stage.seen(lambda p: False)

    assert stage.run(endless, before) == ExitCode.OK
    p = stage.projection()
    assert (p.header.outcome, p.header.phase_reason) == ("stopped", "enough")
    assert p.candidates["c00003"].verdict is None
    assert stage.executor.closed


def test_a_budget_can_be_raised_and_lowered_while_running(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1, confirm=False, budget=Budget(evaluations=4))
    raise_it = (SetBudget(Budget(evaluations=9)), lambda p: p.header.budget.evaluations == 9)
    stage.run(
        lambda n: [f"{'last' if n == 0 and i == 3 else n}.{i} speedup=0.5" for i in range(4)], told(stage, raise_it)
    )
    assert stage.projection().evaluations == 9
    folder = tmp_path / "lower"
    folder.mkdir()
    stage = Stage(folder, in_flight=1, confirm=False)
    lower_it = (SetBudget(Budget(seconds=0.0)), lambda p: p.header.phase == "stopping")
    stage.run(lambda n: [f"{'last' if i == 1 else n}.{n}.{i} speedup=0.5" for i in range(4)], told(stage, lower_it))
    p = stage.projection()
    assert (p.header.outcome, p.evaluations) == ("budget", 2)


def test_review_mode_keeps_candidates_from_being_parents(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1, mode="review", group_size=2)
    script = groups(
        ["a speedup=2.0", "b speedup=0.5"], ["c speedup=3.0", "last speedup=0.4"], ["d speedup=0.3"], ["e speedup=0.2"]
    )
    stage.run(script, told(stage, (Accept("c00001"), decision("c00001", "accepted"))))
    p = stage.projection()
    assert [c.decision for c in p.candidates.values()][:4] == ["accepted", None, "review", None]
    assert p.counts.review == 1
    known = [{s.candidate for s in (*c.exemplars, *c.parents)} for c in stage.policy.contexts]
    assert not known[0] | known[1] & {"c00001"}
    assert all("c00003" not in names for names in known)
    assert any("c00001" in s for s in known[3:])


def test_leaving_review_mode_releases_who_waits(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1, mode="review", confirm=False, group_size=2)
    script = groups(["a speedup=2.0", "last speedup=0.5"], ["b speedup=0.4"], ["c speedup=0.3"])
    stage.run(script, told(stage, (SetMode("auto"), lambda p: p.header.mode == "auto")))
    p = stage.projection()
    assert p.candidates["c00001"].decision is None and p.counts.review == 0
    assert any("c00001" in {s.candidate for s in c.exemplars} for c in stage.policy.contexts)


def test_a_held_candidate_that_is_found_wrong_needs_nobody(tmp_path: Path) -> None:
    stage = Stage(tmp_path, mode="review")
    stage.run(groups(["a speedup=2.0 final=CHEATING"]))
    row = stage.projection().candidates["c00001"]
    assert (row.verdict, row.decision) == ("CHEATING", None)


def test_undoing_in_review_mode_asks_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1, mode="review", confirm=False)
    steps = [
        (Reject("c00001"), decision("c00001", "rejected")),
        (UndoDecision("c00001"), decision("c00001", "review")),
    ]
    stage.run(THREE, told(stage, *steps))
    assert stage.projection().candidates["c00001"].decision == "review"


def test_steering_reaches_the_policy(tmp_path: Path) -> None:
    stage = Stage(tmp_path, in_flight=1, confirm=False)
    said = (Steer("try tiling"), lambda p: p.header.steering == "try tiling")
    stage.run(groups(["last speedup=0.5", "a speedup=0.6", "b speedup=0.7"], ["c speedup=0.8"]), told(stage, said))
    assert [c.steering for c in stage.policy.contexts][:2] == ["", "try tiling"]


def test_an_unreadable_command_is_refused_and_not_fatal(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    connection = open_for_writing(stage.path)
    connection.execute("INSERT INTO commands (at, kind, body) VALUES (0, 'Dance', '{\"type\": \"Dance\"}')")
    connection.close()
    assert stage.run(groups(["a speedup=2.0"])) == ExitCode.OK
    (reason,) = refusals(stage)
    assert "Dance" in reason


def test_decisions_are_answered_after_the_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path, output_dir=str(tmp_path / "out"))
    stage.run(THREE)
    for command in (Accept("c00001"), Reject("c00003", "slow"), Pause(), SubmitSource("late speedup=9.0")):
        stage.send(command)
    engine = Engine(SessionWriter.open(stage.path), lambda settings, path: StandInExecutor())
    assert engine.answer() == ExitCode.OK
    p = stage.projection()
    assert (p.candidates["c00001"].decision, p.candidates["c00003"].decision) == ("accepted", "rejected")
    assert (tmp_path / "out" / "standin-c00001.cpp").is_file()
    assert p.header.closed and p.header.outcome == "exhausted"
    assert ["nothing runs" in r for r in refusals(stage)] == [True, True]


def test_a_full_disk_ends_the_run_and_leaves_a_readable_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench_sessions.errors import SessionFull

    stage = Stage(tmp_path)
    real = SessionWriter.append
    full = False

    def append(self: SessionWriter, events: list[Event]) -> object:
        nonlocal full
        full = full or any(isinstance(e, ev.VerdictReached) and e.evaluation == 3 for e in events)
        if full:
            raise SessionFull(self.path)
        return real(self, events)

    monkeypatch.setattr(SessionWriter, "append", append)
    assert stage.run(endless) == ExitCode.ENVIRONMENT
    monkeypatch.undo()
    assert stage.projection().evaluations == 2
    assert stage.executor.closed
    # Space was made: it goes on.
    stage.send(SetBudget(Budget(evaluations=8)))
    assert stage.run(endless) == ExitCode.OK
    assert stage.projection().evaluations == 8
    assert os.getpid() == stage.projection().header.engine_pid


def test_leaving_review_mode_after_the_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path, mode="review")
    stage.run(groups(["a speedup=2.0"]))
    assert stage.projection().counts.review == 1
    stage.send(SetMode("auto"))
    Engine(SessionWriter.open(stage.path), lambda settings, path: StandInExecutor()).answer()
    p = stage.projection()
    assert (p.header.mode, p.counts.review) == ("auto", 0)
