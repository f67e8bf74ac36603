"""The transcript: prompts and answers at any instant, what grows, what folds, what leads where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.message import Message
from textual.widgets import Input, TextArea

from workbench_screens import asking
from workbench_screens.app import WorkbenchApp
from workbench_screens.bars import header_line
from workbench_screens.detail import DetailPane
from workbench_screens.document import Document, Material, document
from workbench_screens.document_view import DocumentView
from workbench_screens.lines import plain
from workbench_screens.pane import LineView
from workbench_screens.query import QueryError, parse
from workbench_screens.requests_table import RequestsTable, columns_for
from workbench_screens.rewards import cost, series_of, x_range
from workbench_screens.telling import AnswerDialog
from workbench_screens.transcript import carried_lines, status_line
from workbench_screens.words import ASCII, UNICODE
from workbench_sessions import events as ev
from workbench_sessions.commands import AnswerPrompt, Steer
from workbench_sessions.projection import Projection
from workbench_sessions.synthetic import START_S, Beat, sha256
from workbench_sessions.synthetic_prompts import asked

Make = Callable[..., Any]
WIDE = (160, 50)
NARROW = (80, 24)


def notices(app: WorkbenchApp) -> list[str]:
    return [notice.message for notice in app._notifications]


def shown(view: DocumentView) -> str:
    return "\n".join(plain(row) for row in view.document.rows)


def written(*events: ev.Event, texts: tuple[str, ...] = (), policy: str = "llm") -> list[Beat]:
    """A short session: opened, then these events, a second apart."""
    first = next(asked(0)).event
    assert isinstance(first, ev.SessionOpened)
    opened = ev.SessionOpened(**{**{f: getattr(first, f) for f in first.__struct_fields__}, "policy": policy})
    started = (ev.EngineStarted(pid=1), ev.PhaseChanged(phase="running"))
    return [
        Beat(at_s=START_S + i, event=event, sources=list(texts) if i == 0 else [])
        for i, event in enumerate((opened, *started, *events))
    ]


def sent(prompt: str = "p00001", text: str = "the prompt", **more: Any) -> ev.PromptSent:
    return ev.PromptSent(prompt=prompt, model="coder", text_sha256=sha256(text), **more)


def got(prompt: str = "p00001", text: str = "an answer", **more: Any) -> ev.ResponseReceived:
    return ev.ResponseReceived(
        prompt=prompt, model="coder", text_sha256=sha256(text), **{"tokens_in": 1000, "tokens_out": 500, **more}
    )


def made(candidate: str, prompt: str = "p00001", answer: int = 0, source: str = "int x;\n") -> ev.CandidateProposed:
    origin = ev.Origin(policy="llm", model="coder", patch="full", prompt=prompt, answer=answer)
    return ev.CandidateProposed(
        candidate=candidate, kind="kernel", source_sha256=sha256(source), origin=origin, island=0, generation=0
    )


async def test_the_list_and_the_opened_prompt_at_both_sizes(desktop: Make, memory_feed: Any) -> None:
    for size in (WIDE, NARROW):
        d = desktop(memory_feed(beats=list(asked(30)), head=900))
        async with d.app.run_test(size=size) as pilot:
            await pilot.press("8")
            table, view = d.app.screen.query_one(RequestsTable), d.app.screen.query_one(DocumentView)
            assert table.ids == list(reversed(d.feed.projection.requests))
            assert view.is_on_screen == (size == WIDE)
            await pilot.press("enter")
            d.app.tick()
            await pilot.pause()
            assert view.is_on_screen and view.has_focus and table.is_on_screen == (size == WIDE)
            opened = d.app.desk.opened()
            assert opened is not None and opened.prompt in shown(view)
            await pilot.press("escape")
            assert table.has_focus and table.is_on_screen


async def test_an_answer_grows_while_it_is_written_and_is_read_once(desktop: Make, memory_feed: Any) -> None:
    pieces = [ev.ResponseStreamed(prompt="p00001", text=f"piece {i}\n") for i in range(5)]
    again = ev.ResponseStreamed(prompt="p00001", text="afresh\n", restart=True)
    feed = memory_feed(beats=written(sent(), *pieces, again, texts=("the prompt",)), head=4)
    d = desktop(feed)
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("8")
        view = d.app.screen.query_one(DocumentView)
        for i in range(5):
            feed.arrive(1)
            d.clock[0] += 1
            d.app.tick()
            assert f"piece {i}" in shown(view) and shown(view).count("piece 0") == 1
        assert view.reading.loads == 1
        feed.arrive(1)
        d.clock[0] += 1
        d.app.tick()
        assert "afresh" in shown(view) and "piece" not in shown(view)
        assert "again 1" in shown(view)
        feed.seek_seq(6)
        d.app.tick()
        assert "piece 1" in shown(view) and "piece 2" not in shown(view)


async def test_the_sections_the_code_and_the_reasoning_stand_apart(desktop: Make, memory_feed: Any) -> None:
    texts = ("the prompt", "## Code\nprose and code", "I think.", "int judged;\n")
    answer = got(text=texts[1], analysis="B is faster.", design="Unroll it.", reasoning_sha256=sha256("I think."))
    d = desktop(memory_feed(beats=written(sent(), answer, made("c000001", source=texts[3]), texts=texts)))
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("8", "enter")
        await d.app.workers.wait_for_complete()
        view = d.app.screen.query_one(DocumentView)
        said = shown(view)
        order = [said.index(part) for part in ("Reasoning", "Performance analysis", "Algorithm design", "Code, as")]
        assert order == sorted(order)
        assert all(part in said for part in ("B is faster.", "Unroll it.", "int judged;", "no price", "c000001"))
        assert "I think." not in said and "the prompt" not in said and "prose and code" not in said
        assert d.app.desk.coloured(sha256(texts[3])) is not None
        view.fold("reasoning")
        view.fold("prompt")
        assert "I think." in shown(view) and "the prompt" in shown(view)


async def test_links_lead_to_candidates_and_back(desktop: Make, memory_feed: Any) -> None:
    d = desktop(memory_feed(beats=list(asked(30))))
    p = d.feed.projection
    row = next(r for r in p.requests.values() if r.exemplars and r.candidates)
    followed: list[tuple[str, str]] = []

    def hear(message: Message) -> None:
        if isinstance(message, DocumentView.Follow):
            followed.append((message.kind, message.target))

    async with d.app.run_test(size=WIDE, message_hook=hear) as pilot:
        d.app.desk.selected = row.candidates[0]
        await pilot.press("t")
        assert d.app.current_mode == "transcript" and d.app.desk.opened().prompt == row.prompt
        view = d.app.screen.query_one(DocumentView)
        assert view.has_focus
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert followed[0] == ("candidate", row.exemplars[0].candidate)
        assert d.app.current_mode == "population" and d.app.desk.selected == row.exemplars[0].candidate
        said = "\n".join(plain(line) for line in d.app.screen.query_one("#detail", DetailPane)._lines)
        assert p.candidates[d.app.desk.selected].origin.prompt in said
        d.app.desk.selected = row.candidates[0]
        d.app.desk.open_prompt(None)
        await pilot.press("enter", "t")
        await pilot.pause()
        assert d.app.current_mode == "transcript" and d.app.desk.opened().prompt == row.prompt and view.has_focus
        await pilot.press("escape", "t")
        await pilot.pause()
        assert view.has_focus
        await pilot.press("c")
        await pilot.pause()
        assert d.app.desk.selected == asking.best_of(asking.asked(p, row).candidates).id  # type: ignore[union-attr]


async def test_a_candidate_without_a_prompt_says_so(desktop: Make) -> None:
    d = desktop()
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("t")
        assert any("did not come of a prompt" in text for text in notices(d.app))
        await pilot.press("8", "enter", "c", "n", "A")
        assert any("there is no prompt yet" in text for text in notices(d.app))
        assert any("manual" in text for text in notices(d.app))


async def test_the_list_is_filtered_like_the_population(desktop: Make, memory_feed: Any) -> None:
    d = desktop(memory_feed(beats=list(asked(40))))
    requests = d.feed.projection.requests
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("8", "slash", *"is:barren", "enter")
        table = d.app.screen.query_one(RequestsTable)
        assert table.ids and all(not requests[name].candidates for name in table.ids)
        await pilot.press("slash")
        d.app.screen.query_one("#ask-filter", Input).value = "text:polynomial"
        await pilot.press("enter")
        await d.app.workers.wait_for_complete()
        await pilot.pause()
        texts = {name: " ".join(d.feed.sources[r.text_sha256] for r in requests[name].replies if r.text_sha256)
                 + d.feed.sources[requests[name].text_sha256] for name in requests}  # fmt: skip
        assert set(table.ids) == {name for name, text in texts.items() if "polynomial" in text.lower()}
        assert 0 < len(table.ids) < len(requests)
        await pilot.press("slash")
        d.app.screen.query_one("#ask-filter", Input).value = "colour:red"
        await pilot.press("enter")
        assert any("no key" in text for text in notices(d.app))


async def test_a_text_is_searched_also_where_it_is_folded(desktop: Make, memory_feed: Any) -> None:
    prompt = "\n".join(f"line {i}" + (" needle" if i % 40 == 3 else "") for i in range(130))
    d = desktop(memory_feed(beats=written(sent(text=prompt), got(), texts=(prompt, "an answer"))))
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("8", "enter", "slash", *"NEEDLE", "enter")
        view = d.app.screen.query_one(DocumentView)
        assert "prompt" not in view.folded and len(view.hits) == 4
        places = [view.hit]
        for _ in range(3):
            await pilot.press("n")
            places.append(view.hit)
            assert view.hit is not None
            assert view.scroll_offset.y <= view.hit < view.scroll_offset.y + view.size.height
        assert places == view.hits
        await pilot.press("n")
        assert any("no further" in text for text in notices(d.app))
        await pilot.press("N", "escape")
        assert view.needle == "" and view.has_focus


async def test_several_answers_are_turned_over(desktop: Make, memory_feed: Any) -> None:
    texts = ("the prompt", "first words", "second words")
    beats = written(
        sent(answers=2), got(text=texts[1]), got(text=texts[2], answer=1, tokens_in=0, tokens_out=0),
        made("c000001", answer=1), texts=(*texts, "int x;\n"),
    )  # fmt: skip
    d = desktop(memory_feed(beats=beats))
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("8", "enter")
        view = d.app.screen.query_one(DocumentView)
        assert "Answer 1 of 2" in shown(view) and "first words" in shown(view)
        await pilot.press("right", "right")
        assert "Answer 2 of 2" in shown(view) and "int x;" in shown(view)
        d.app.desk.selected = "c000001"
        d.app.desk.open_prompt(None)
        await pilot.press("1", "t")
        d.app.tick()
        assert "Answer 2 of 2" in shown(view)


async def test_nothing_that_a_model_says_reaches_the_terminal_as_it_is(desktop: Make, memory_feed: Any) -> None:
    nasty = "safe\x1b]0;owned\x07 \x1b[2J\u202e text [bold]markup[/]"
    beats = written(sent(text=nasty), got(text=nasty, problem=nasty), texts=(nasty,))
    d = desktop(memory_feed(beats=beats))
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("8", "enter")
        d.app.screen.query_one(DocumentView).fold("prompt")
        await pilot.pause()
        drawn = "".join(strip.text for strip in d.app.screen._compositor.render_strips())
        assert "safe" in drawn and "[bold]markup[/]" in drawn
        assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char == "\u202e" for char in drawn)


async def test_steering_is_added_replaced_and_dropped(desktop: Make, memory_feed: Any) -> None:
    d = desktop(memory_feed(beats=list(asked(40)), head=1200))
    carried = "\n".join(plain(line) for line in carried_lines(d.app.desk, 80))
    assert "Prefer one pass" in carried and "Keep the tail" in carried and "accepted: clean and fast" in carried
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("8", "s", *"wider", "enter")
        await pilot.press("s", *"only this", "ctrl+r")
        await pilot.press("s", "ctrl+x")
        await pilot.press("s", "ctrl+r", "s", "escape")
        await pilot.pause()
    assert d.port.sent == [Steer("wider"), Steer("only this", replace=True), Steer("", replace=True)]


def test_a_rejection_with_a_reason_is_carried_on(memory_feed: Any, desktop: Make) -> None:
    beats = written(sent(), got(), made("c000001"), ev.HumanRejected(candidate="c000001", reason="hard to read"))
    d = desktop(memory_feed(beats=beats))
    assert "c000001 rejected: hard to read" in plain(carried_lines(d.app.desk, 80)[0])


async def test_a_prompt_is_answered_by_hand_and_a_draft_is_kept(desktop: Make, memory_feed: Any) -> None:
    d = desktop(memory_feed(beats=written(sent(), texts=("the prompt",), policy="manual")))
    async with d.app.run_test(size=NARROW) as pilot:
        await pilot.press("8", "A")
        assert isinstance(d.app.screen, AnswerDialog)
        await pilot.press("ctrl+s")
        d.app.screen.query_one(TextArea).text = "int half;"
        await pilot.press("escape", "A")
        assert d.app.screen.query_one(TextArea).text == "int half;"
        d.app.screen.query_one(TextArea).text = "int whole;"
        await pilot.press("ctrl+s")
        await pilot.pause()
    assert d.port.sent == [AnswerPrompt("p00001", "int whole;", d.app.desk.person)]
    assert d.app.desk.drafts == {}


async def test_an_outage_says_since_when_and_why(desktop: Make, memory_feed: Any) -> None:
    gone = ev.PhaseChanged(phase="paused", reason="coder: HTTP 503, the server is down")
    d = desktop(memory_feed(beats=written(sent(), got(cost=0.25), gone)))
    said = plain(status_line(d.app.desk, 160))
    assert "nothing can be asked since 00:00:05: coder: HTTP 503" in said and "money 0.250/0.250" in said
    assert "money 0.250/0.250" in plain(header_line(d.app.desk, 160))


def test_cost_is_money_where_it_has_a_price_and_else_tokens(memory_feed: Any) -> None:
    p = memory_feed(beats=list(asked(60))).projection
    curve = series_of(p, "cost", "cost", 0.0)
    assert curve.y.tolist() == [*(point.speedup for point in p.best_curve), p.best_curve[-1].speedup]
    assert curve.x.tolist() == [*(point.money for point in p.best_curve), p.spent_money]
    assert cost(p) == (p.spent_money, 0.25) and x_range(p, "cost")[1] >= 0.25
    unpriced = memory_feed(beats=written(sent(), got(), made("c000001"))).projection
    assert cost(unpriced) == (1500.0, 2_000_000) and x_range(unpriced, "cost")[1] == pytest.approx(1530)


async def test_the_cost_curve_is_there_only_when_models_are_asked(desktop: Make, memory_feed: Any) -> None:
    for beats, there in ((None, False), (list(asked(30)), True)):
        d = desktop(memory_feed(beats=beats))
        async with d.app.run_test(size=NARROW) as pilot:
            await pilot.press("2")
            d.app.tick()
            await pilot.pause()
            assert d.app.screen.query_one("#curve-cost").display is there


async def test_hidden_and_unchanged_it_does_nothing(desktop: Make, memory_feed: Any) -> None:
    d = desktop(memory_feed(beats=list(asked(30)), head=600))
    async with d.app.run_test(size=NARROW) as pilot:
        await pilot.press("8")
        table, view = d.app.screen.query_one(RequestsTable), d.app.screen.query_one(DocumentView)
        arranged, unseen = table.arranges, view.draws
        d.app.desk.open_prompt(table.ids[-1])
        for _ in range(5):
            d.app.tick()
        assert table.arranges == arranged and view.draws == unseen
        await pilot.press("enter")
        await pilot.pause()
        drawn = view.draws
        for _ in range(5):
            d.app.tick()
        assert view.draws == drawn > unseen


@pytest.mark.parametrize("width", [20, 46, 80, 160])
def test_columns_fit(width: int) -> None:
    columns = columns_for(width)
    assert sum(c.width + 1 for c in columns[:-1]) + columns[-1].width <= max(width, 40)


@pytest.mark.parametrize("text", ["model:", "is:nothing", "cost>much", "colour:red"])
def test_filters_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(QueryError):
        parse(text, asking.REQUESTS)


def test_filters_take_what_they_say(memory_feed: Any) -> None:
    p: Projection = memory_feed(beats=list(asked(60))).projection
    rows = [asking.asked(p, r) for r in p.requests.values()]

    def taken(text: str) -> set[str]:
        query = parse(text, asking.REQUESTS)
        return {one.request.prompt for one in rows if query.matches(one)}

    by = p.requests.values()
    assert taken("verdict:faster") == {
        r.prompt for r in by if any(p.candidates[c].verdict == "FASTER" for c in r.candidates)
    }
    assert taken("cost>0.002") == {r.prompt for r in by if (r.cost or 0) > 0.002}
    assert taken("finish:refusal,length") == {
        r.prompt for r in by if any(x.finish in ("refusal", "length") for x in r.replies)
    }
    assert taken("-is:failed is:repair") == {r.prompt for r in by if r.repairs and r.state != "failed"}
    assert taken("is:reasoned") and taken("thinker patch:full") < taken("model:thinker")


def test_ascii_mode_draws_no_other_signs(memory_feed: Any) -> None:
    p = memory_feed(beats=list(asked(12))).projection
    for r in p.requests.values():
        made_of: Document = document(Material(one=asking.asked(p, r), prompt="x"), 60, frozenset(), p.at_s, ASCII)
        text = "".join(plain(row) for row in made_of.rows).replace("×", "").replace("·", "").replace("—", "")
        assert text.replace("…", "").isascii()
        assert document(Material(one=asking.asked(p, r)), 60, frozenset(), p.at_s, UNICODE).rows


@pytest.mark.parametrize("mode", ["transcript", "population"])
async def test_painting_only_what_changed_shows_the_same_as_painting_all(
    desktop: Make, memory_feed: Any, mode: str
) -> None:
    d = desktop(memory_feed(beats=list(asked(30)), head=300))
    async with d.app.run_test(size=WIDE) as pilot:
        await d.app.action_show(mode)
        views = [view for view in d.app.screen.query(LineView) if view.is_on_screen and view.size]
        assert len(views) > 4

        def painted() -> list[list[str]]:
            return [[strip.text for strip in view.render_lines(view.size.region)] for view in views]

        keys = ("down", "down", "pagedown", "enter", "tab", "escape", "up", "ctrl+home")
        for step in range(48):
            d.feed.arrive(11)
            d.clock[0] += 0.6
            d.app.tick()
            if mode == "transcript" and step % 3 == 0:
                await pilot.press(keys[step // 3 % len(keys)])
                d.clock[0] += 0.6
                d.app.tick()
            await pilot.pause()
            now = painted()
            for view in views:
                view.refresh()
            assert now == painted()
