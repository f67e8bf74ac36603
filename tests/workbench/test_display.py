from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.display.contract import Shown
from workbench.display.headless import Changes, Headless, PlainReporter
from workbench.display.result import outcome_code
from workbench.display.words import leaders, ratio, seconds
from workbench.naming import session_path, task_stem
from workbench.terminal import Terminal
from workbench_engine.exits import ExitCode
from workbench_sessions.events import SessionClosed, VerdictReached
from workbench_sessions.feed import SessionCommandPort, SessionFeed
from workbench_sessions.fold import fold
from workbench_sessions.projection import Header, Projection
from workbench_sessions.reader import SessionReader


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "—"), (4.66e-3, "4.66 ms"), (1.5, "1.50 s"), (321e-6, "321 µs"), (2e-7, "0.20 µs"), (83.21, "83.2 s")],
)
def test_seconds_in_a_fitting_unit(value: float | None, said: str) -> None:
    assert seconds(value) == said


@given(st.floats(1e-3, 1e4))
def test_a_ratio_never_has_an_exponent(value: float) -> None:
    said = ratio(value)
    assert "e" not in said and said.endswith("×")
    assert abs(float(said[:-1]) - value) <= max(0.0051 * max(value, 1.0), 0.5 if value >= 100 else 0.0)


@pytest.mark.parametrize(
    ("here", "word"),
    [
        (Terminal(True, True, True, "xterm-256color"), ""),
        (Terminal(True, False, True, "xterm"), "stdout is"),
        (Terminal(False, False, True, "xterm"), "stdin, stdout are"),
        (Terminal(True, True, True, "dumb"), "dumb"),
        (Terminal(True, True, True, ""), "TERM"),
        (Terminal(True, True, True, "xterm", ci=True), "CI"),
    ],
)
def test_the_full_screen_needs_a_terminal(here: Terminal, word: str) -> None:
    assert (word in here.refusal) if word else here.refusal == ""


def test_changes_tell_each_verdict_once_however_the_session_is_cut(session: Path) -> None:
    with SessionReader(session) as reader:
        events = reader.events(0, 1_000_000)
        whole = reader.project_at(reader.head_seq())
    projection, changes, told = Projection(), Changes(), []
    for number, one in enumerate(events):
        fold(projection, one)
        if number % 7 == 0:
            told += changes.lines(projection)
    told += changes.lines(projection)
    for row in whole.candidates.values():
        lines = [line for line in told if f" {row.id}  " in line]
        judgements = [
            one.event for one in events if isinstance(one.event, VerdictReached) and one.event.candidate == row.id
        ]
        assert 1 <= len(lines) <= max(1, len(judgements)) if judgements else not lines
    assert not changes.lines(projection)


def test_headless_ends_with_the_session_and_shows_what_came_last(session: Path) -> None:
    out = io.StringIO()
    feed = SessionFeed(session, follow=True)
    asked: list[None] = []

    def ended() -> bool:
        asked.append(None)
        return len(asked) > 2

    waits: list[float] = []
    shown = Shown(session, feed, SessionCommandPort(session), ended)
    Headless(PlainReporter(out), waits.append).watch(shown)
    feed.close()
    assert len(waits) == 2
    assert f"{feed.projection.best}" in out.getvalue()


def test_leaders_start_with_the_best_and_leave_out_the_rejected(session: Path) -> None:
    with SessionReader(session) as reader:
        p = reader.project_at(reader.head_seq())
    found = leaders(p, 100)
    assert found[0].id == p.best
    assert all(row.verdict == "FASTER" and row.decision != "rejected" for row in found)
    speeds = [row.speedup or 0.0 for row in found[1:]]
    assert speeds == sorted(speeds, reverse=True)


@pytest.mark.parametrize(
    ("best", "outcome", "code"),
    [
        ("c1", "budget", ExitCode.OK),
        (None, "budget", ExitCode.BUDGET),
        (None, "exhausted", ExitCode.FAILED),
        (None, "failed", ExitCode.FAILED),
    ],
)
def test_the_exit_status_says_how_a_run_ended(best: str | None, outcome: str, code: ExitCode) -> None:
    p = Projection(best=best, header=Header(closed=True, outcome=outcome))
    assert outcome_code(p) == code
    assert SessionClosed(outcome=outcome).outcome == outcome


def test_new_sessions_never_share_a_name(tmp_path: Path) -> None:
    first = session_path(tmp_path, "softmax_rows", "", now_s=1e9)
    first.touch()
    second = session_path(tmp_path, "softmax_rows", "", now_s=1e9)
    assert first != second
    assert first.name.startswith("softmax_rows-")
    assert task_stem("/a/b/my_task/reference.py") == "my_task"
    assert task_stem("x/strange name!.py") == "strange_name_"
