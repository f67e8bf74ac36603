"""Prompts and answers in the projection, and their texts in the file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench_sessions import events as ev
from workbench_sessions.commands import AnswerPrompt, decode_command, encode_command
from workbench_sessions.events import Event, Stamped
from workbench_sessions.feed import SessionFeed
from workbench_sessions.fold import fold, fold_all
from workbench_sessions.log import SessionWriter
from workbench_sessions.projection import Projection, Request
from workbench_sessions.synthetic_prompts import asked, write_asked

P = "p00001"


def folded(*events: Event) -> Projection:
    return fold_all(Projection(), [Stamped(i, float(i), float(i), event) for i, event in enumerate(events, start=1)])


def sent(prompt: str = P, **more: object) -> ev.PromptSent:
    return ev.PromptSent(prompt=prompt, model="m", text_sha256="t", **more)  # type: ignore[arg-type]


def piece(text: str, restart: bool = False, prompt: str = P) -> ev.ResponseStreamed:
    return ev.ResponseStreamed(prompt=prompt, text=text, restart=restart)


def got(prompt: str = P, **more: object) -> ev.ResponseReceived:
    return ev.ResponseReceived(**{"prompt": prompt, "model": "m2", "text_sha256": "a", **more})  # type: ignore[arg-type]


def made(candidate: str, prompt: str | None = P) -> ev.CandidateProposed:
    origin = ev.Origin(policy="llm", prompt=prompt)
    return ev.CandidateProposed(
        candidate=candidate, kind="kernel", source_sha256="s", origin=origin, island=0, generation=0
    )


def test_a_prompt_waits_writes_and_is_answered() -> None:
    assert folded(sent()).requests[P].state == "waiting"
    writing = folded(sent(), piece("four"), piece("more!")).requests[P]
    assert (writing.state, writing.streamed, writing.first_at_s) == ("streaming", 9, 2.0)
    again = folded(sent(), piece("four"), piece("x", restart=True)).requests[P]
    assert (again.streamed, again.restarts, again.first_at_s) == (1, 1, 2.0)
    done = folded(sent(), piece("x"), got(tokens_in=5, tokens_out=7, cost=0.5, seconds=2.0, endpoint="e")).requests[P]
    assert (done.state, done.model, done.endpoint, done.tokens_in, done.cost) == ("answered", "m2", "e", 5, 0.5)
    assert folded(sent(), got(finish="failed", problem="gone", text_sha256="")).requests[P].state == "failed"


def test_several_answers_add_up_and_candidates_are_linked_both_ways() -> None:
    p = folded(
        sent(answers=2),
        got(tokens_in=5, tokens_out=7, cost=0.5, seconds=2.0),
        got(answer=1, tokens_in=0, tokens_out=0, cost=0.0, seconds=0.0, problem="empty"),
        made("c1"),
        made("c2"),
        made("c2"),
        made("c3", prompt=None),
        made("c4", prompt="p09999"),
    )
    row = p.requests[P]
    assert (row.candidates, row.tokens_in, row.tokens_out, row.cost, row.seconds) == (["c1", "c2"], 5, 7, 0.5, 2.0)
    assert [reply.problem for reply in row.replies] == ["", "empty"]
    assert p.candidates["c1"].origin.prompt == P


def test_without_a_price_there_is_no_cost() -> None:
    p = folded(sent(), got(tokens_in=5, tokens_out=7, wasted_tokens=3))
    assert p.requests[P].cost is None and (p.spent_money, p.spent_tokens) == (0.0, 15)


@pytest.mark.parametrize("end", [ev.EngineStarted(pid=2, resumed=True), ev.SessionClosed(outcome="stopped")])
def test_prompts_nobody_waits_for_are_lost(end: Event) -> None:
    p = folded(sent(), sent("p2"), piece("x", prompt="p2"), sent("p3"), got("p3"), end)
    assert [row.state for row in p.requests.values()] == ["lost", "lost", "answered"]


def test_what_is_said_of_an_unknown_prompt_changes_no_row() -> None:
    p = folded(piece("x"), got(tokens_in=1, tokens_out=1))
    assert p.requests == {} and p.spent_tokens == 2


def test_the_curves_know_what_was_spent_by_then() -> None:
    faster = ev.VerdictReached(candidate="c1", verdict="FASTER", speedup=1.5, confirmed=True)
    p = folded(sent(), got(tokens_in=5, tokens_out=5, cost=0.25), made("c1"), faster, sent("p2"), got("p2", cost=1.0))
    (point,) = p.best_curve
    assert (point.tokens, point.money, p.spent_money) == (10, 0.25, 1.25)


@given(st.lists(st.tuples(st.text(max_size=50), st.booleans()), max_size=30))
@settings(deadline=None)
def test_the_projection_holds_no_text_of_an_answer(pieces: list[tuple[str, bool]]) -> None:
    told = folded(sent(), *(piece(text, restart) for text, restart in pieces))
    length = 0
    for text, restart in pieces:
        length = len(text) + (0 if restart else length)
    assert told.requests[P].streamed == length
    longer = folded(sent(), *(piece(text * 1000, restart) for text, restart in pieces))
    size = len(msgspec.json.encode(longer.requests[P]))
    assert size <= len(msgspec.json.encode(told.requests[P])) + 3


def test_problems_are_kept_short() -> None:
    assert len(folded(sent(), got(problem="x" * 100_000)).requests[P].replies[0].problem) <= 300


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    yield write_asked(tmp_path / "asked.wb", 30)


def test_texts_come_from_the_file_at_any_instant(path: Path) -> None:
    beats = list(asked(30))
    feed = SessionFeed(path, follow=False)
    whole: dict[str, str] = {}
    checked = 0
    for seq, beat in enumerate(beats, start=1):
        event = beat.event
        if not isinstance(event, ev.ResponseStreamed):
            continue
        whole[event.prompt] = whole.get(event.prompt, "") + event.text
        if seq % 37 == 0:
            feed.seek_seq(seq)
            pieces = feed.streamed(event.prompt)
            assert "".join(one.text for one in pieces) == whole[event.prompt]
            assert feed.projection.requests[event.prompt].streamed == len(whole[event.prompt])
            assert feed.streamed(event.prompt, after=seq) == [] and feed.answers(event.prompt) == []
            checked += 1
    assert checked > 3
    feed.seek_seq(feed.head_seq)
    rows: list[Request] = [row for row in feed.projection.requests.values() if row.state == "answered"]
    for row in rows:
        (told,) = feed.answers(row.prompt)
        assert told.text_sha256 == row.replies[0].text_sha256
        assert feed.source(row.text_sha256).startswith("[system]") and feed.source(told.text_sha256)
        if told.finish == "stop":
            assert "".join(one.text for one in feed.streamed(row.prompt)) in feed.source(told.text_sha256)
    holding = feed.holding("POLYNOMIAL")
    assert holding == {sha for sha in holding if "polynomial" in feed.source(sha).lower()} and holding
    feed.close()


def test_a_restart_cuts_what_was_written_before(tmp_path: Path) -> None:
    with SessionWriter.create(tmp_path / "s.wb", "{}") as writer:
        writer.append([sent(), piece("half"), piece("whole", restart=True), piece("!")])
        feed = SessionFeed(tmp_path / "s.wb", follow=True)
        assert [(one.text, one.restart) for one in feed.streamed(P, after=2)] == [("whole", True), ("!", False)]
        feed.close()


def test_the_made_up_conversation_is_repeatable_and_shows_everything() -> None:
    first, second = list(asked(60, seed=3)), list(asked(60, seed=3))
    assert first == second != list(asked(60, seed=4))
    assert all(a.at_s <= b.at_s for a, b in itertools.pairwise(first))
    p = Projection()
    most = 0
    for seq, beat in enumerate(first, start=1):
        fold(p, Stamped(seq, beat.at_s, beat.at_s, beat.event))
        most = max(most, sum(row.state == "streaming" for row in p.requests.values()))
    states = {row.state for row in p.requests.values()}
    assert states == {"answered", "failed"} and most > 2
    assert {reply.finish for row in p.requests.values() for reply in row.replies} >= {"stop", "refusal", "failed"}
    assert list(p.requests) == sorted(p.requests)
    linked = [c for c in p.candidates.values() if c.origin.policy == "llm"]
    assert linked and all(c.id in p.requests[c.origin.prompt or ""].candidates for c in linked)


def test_an_answer_by_hand_is_a_command() -> None:
    wish = AnswerPrompt("p00003", "int x;", "ada")
    assert decode_command(encode_command(wish)[1]) == wish


def retry(prompt: str = P, wait_s: float = 12.0, **more: object) -> ev.RetryScheduled:
    return ev.RetryScheduled(prompt=prompt, wait_s=wait_s, reason="limits the rate", **more)  # type: ignore[arg-type]


def test_a_prompt_that_waits_says_until_when_and_why() -> None:
    p = folded(sent(), retry(limited=True, attempt=2, attempts=4))
    wait = p.requests[P].wait
    assert wait is not None and p.requests[P].state == "waiting"
    assert (wait.until_s, wait.reason, wait.limited, wait.attempt, wait.attempts) == (
        14.0,
        "limits the rate",
        True,
        2,
        4,
    )
    assert "p00001: asked again in 12 s, try 3 of 5: limits the rate" in p.log[-1].text
    for over in (piece("x"), got(), got(finish="failed", problem="gone"), ev.EngineStarted(pid=2, resumed=True)):
        assert folded(sent(), retry(), over).requests[P].wait is None
    assert folded(sent(), got(), retry()).requests[P].wait is None


def test_a_run_that_waits_for_its_policy_says_until_when() -> None:
    away = ev.PhaseChanged(phase="paused", reason="gone")
    p = folded(sent(), away, retry(""))
    assert p.wait is not None and p.wait.until_s == 15.0 and p.requests[P].wait is None
    for over in (ev.PhaseChanged(phase="running"), ev.EngineStarted(pid=2, resumed=True), away):
        assert folded(away, retry(""), over).wait is None


def test_requests_are_those_really_made() -> None:
    # Two tries for the first prompt, in flight the second, a cap met by the third before it was asked.
    p = folded(sent(), got(requests=2), got(answer=1, requests=0), sent("p00002"), sent("p00003"))
    assert p.spent_requests == 4
    assert folded(sent(), got(requests=0)).spent_requests == 0
    # An older session does not tell: one for each prompt.
    assert folded(sent(), got(), ev.BudgetSpent(evaluations=0, seconds=1.0)).spent_requests == 1
    assert folded(ev.BudgetSpent(evaluations=0, seconds=1.0, requests=9)).spent_requests == 9


def test_the_judge_spends_of_the_same_budget() -> None:
    asked = ev.OpinionReceived(
        candidate="c1", model="m", tokens_in=5, tokens_out=7, cost=0.5, requests=2, wasted_tokens=3, wasted_cost=0.25
    )
    p = folded(sent(), got(tokens_in=10, tokens_out=1, cost=1.0, requests=1), asked)
    assert (p.spent_tokens, p.spent_money, p.spent_requests) == (26, 1.75, 3)
    assert (p.judged.tokens, p.judged.money, p.judged.requests) == (15, 0.75, 2)


def test_a_cap_that_was_reached_is_known_until_it_is_changed() -> None:
    reached = ev.CapReached(cap="requests", text="3 of 3 requests are spent")
    p = folded(reached)
    assert p.header.cap == "requests" and "cap on requests reached: 3 of 3 requests are spent" in p.log[-1].text
    assert folded(reached, ev.BudgetChanged(ev.Budget(requests=9))).header.cap == ""
    assert folded(reached, ev.EngineStarted(pid=2, resumed=True)).header.cap == ""
