"""What a person does, and what arrives at the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.message import Message
from textual.widgets import Input, OptionList

from workbench_screens.actions import ACTIONS, BY_ID, GROUPS, bindings, check_keymap, key_text
from workbench_screens.app import WorkbenchApp
from workbench_screens.bars import folded_line, footer_line, header_line, transport_line
from workbench_screens.detail import DetailPane
from workbench_screens.dialogs import BudgetError, ConfirmDialog, DecisionDialog, parse_budget
from workbench_screens.diffview import DiffView
from workbench_screens.guide import guide_lines
from workbench_screens.lineage import ancestry, tree_lines
from workbench_screens.lines import plain, width_of
from workbench_screens.pane import Pane
from workbench_screens.sessions import SessionsList
from workbench_screens.table import CandidateTable, columns_for
from workbench_sessions.commands import (
    Accept,
    Pause,
    Pin,
    Reject,
    SetBudget,
    SetMode,
    Steer,
    Stop,
    SubmitSource,
)
from workbench_sessions.errors import SessionMissing
from workbench_sessions.events import Budget
from workbench_sessions.store import SessionSummary

Make = Callable[..., Any]
WIDE = (160, 50)
NARROW = (80, 24)


def notices(app: WorkbenchApp) -> list[str]:
    return [notice.message for notice in app._notifications]


def judged(feed: Any, verdict: str = "FASTER") -> str:
    """A candidate with that verdict and no decision yet."""
    found: str = next(c.id for c in feed.projection.candidates.values() if c.verdict == verdict and not c.decision)
    return found


async def test_a_candidate_is_accepted_with_a_reason(desktop: Make) -> None:
    d = desktop()
    d.app.desk.selected = judged(d.feed)
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("a")
        assert isinstance(d.app.screen, DecisionDialog)
        await pilot.press(*"tidy", "enter")
        await pilot.pause()
    assert d.port.sent == [Accept(d.app.desk.selected, "tidy", d.app.desk.person)]


async def test_a_quick_reason_rejects(desktop: Make) -> None:
    d = desktop()
    d.app.desk.selected = judged(d.feed)
    async with d.app.run_test(size=NARROW) as pilot:
        await pilot.press("r")
        d.app.screen.query_one(OptionList).focus()
        await pilot.press("down", "enter")
        await pilot.pause()
    sent = d.port.sent[0]
    assert isinstance(sent, Reject) and sent.candidate == d.app.desk.selected and sent.reason


async def test_escape_decides_nothing(desktop: Make) -> None:
    d = desktop()
    d.app.desk.selected = judged(d.feed)
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("a", "escape")
        assert not isinstance(d.app.screen, DecisionDialog)
    assert d.port.sent == []


@pytest.mark.parametrize("key", ["a", "r", "p", "e", "m", "b", "x", "s", "u"])
async def test_decisions_are_off_in_replay_and_say_why(desktop: Make, memory_feed: Any, key: str) -> None:
    d = desktop(memory_feed(candidates=12, live=False))
    d.feed.seek_seq(300)
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press(key)
        assert any("replay" in text for text in notices(d.app))
        assert len(d.app.screen_stack) == 1
    assert d.port.sent == []


async def test_without_an_engine_the_notice_says_what_to_do(desktop: Make) -> None:
    d = desktop()
    d.feed.engine_alive = False
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("space", "a")
        assert any("--resume" in text for text in notices(d.app))
    assert d.port.sent == []


async def test_a_session_that_left_live_while_one_thought_sends_nothing(desktop: Make) -> None:
    d = desktop()
    d.app.desk.selected = judged(d.feed)
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("a")
        d.feed.pause()
        await pilot.press("enter")
        await pilot.pause()
    assert d.port.sent == []


async def test_pin_mode_pause_steer_stop_budget(desktop: Make) -> None:
    d = desktop()
    name = d.app.desk.selected = judged(d.feed)
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("p", "m", "space")
        await pilot.press("s", *"wider", "enter")
        await pilot.press("x")
        assert isinstance(d.app.screen, ConfirmDialog)
        await pilot.press("enter")
        await pilot.press("x", "y")
        await pilot.press("b")
        d.app.screen.query_one("#evaluations", Input).value = "77"
        await pilot.press("enter")
        await pilot.pause()
    pin, mode, pause, steer, stop, budget = d.port.sent
    assert (pin, mode, pause, steer) == (Pin(name, True), SetMode("review"), Pause(), Steer("wider"))
    assert isinstance(stop, Stop) and isinstance(budget, SetBudget) and budget.budget.evaluations == 77


async def test_a_budget_that_is_none_stays_open(desktop: Make) -> None:
    d = desktop()
    async with d.app.run_test(size=NARROW) as pilot:
        await pilot.press("b")
        d.app.screen.query_one("#tokens", Input).value = "many"
        await pilot.press("enter")
        assert "tokens" in str(d.app.screen.query_one("#wrong").render())
    assert d.port.sent == []


def test_budgets_parse() -> None:
    assert parse_budget("600", "1:30:00", "", "") == Budget(evaluations=600, seconds=5400.0)
    assert parse_budget("", "", "", "") == Budget()
    for fields in (("0", "", "", ""), ("", "soon", "", ""), ("", "", "-1", ""), ("", "", "", "free")):
        with pytest.raises(BudgetError):
            parse_budget(*fields)


async def test_an_edit_is_sent_once_with_its_parent(desktop: Make, writing_editor: Any) -> None:
    editor = writing_editor("int better;\n")
    d = desktop(editor=editor)
    name = d.app.desk.selected = judged(d.feed)
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("e")
        await pilot.pause()
    assert editor.seen == d.feed.sources[d.feed.projection.candidates[name].source_sha256]
    (sent,) = d.port.sent
    assert isinstance(sent, SubmitSource)
    assert (sent.source, sent.parent, sent.kind) == ("int better;\n", name, "kernel")


async def test_an_edit_without_a_change_sends_nothing(desktop: Make, writing_editor: Any) -> None:
    d = desktop(editor=writing_editor(None))
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("e")
        await pilot.pause()
        assert any("left as it is" in text for text in notices(d.app))
    assert d.port.sent == []


async def test_a_port_that_fails_is_a_notice(desktop: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    d = desktop()

    def fail(command: object) -> None:
        raise SessionMissing("gone.wb")

    monkeypatch.setattr(d.port, "send", fail)
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("p")
        assert any("gone.wb" in text for text in notices(d.app))
        assert d.app.is_running


async def test_moving_through_time(desktop: Make) -> None:
    d = desktop()
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("left_square_bracket")
        assert (d.feed.live, d.feed.position_seq) == (False, 699)
        assert "REPLAY" in plain(header_line(d.app.desk, 160))
        await pilot.press("0")
        assert d.feed.position_seq == 1
        await pilot.press("asterisk")
        assert d.feed.projection.best is not None
        await pilot.press("space")
        assert d.feed.playing
        await pilot.press("plus")
        assert d.feed.speed == 2.0
        await pilot.press("g", *"0:09", "enter")
        await pilot.pause()
        assert 8 <= d.feed.position_at_s - d.feed.first_at_s <= 9
        await pilot.press("g", *"#500", "enter")
        await pilot.pause()
        assert d.feed.position_seq == 500
        await pilot.press("g", *"nowhere", "enter")
        await pilot.pause()
        assert any("no time" in text for text in notices(d.app))
        await pilot.press("L")
        assert d.feed.live and "LIVE" in plain(header_line(d.app.desk, 160))


async def test_the_cursor_stays_on_its_candidate_while_rows_arrive(desktop: Make, memory_feed: Any) -> None:
    d = desktop(memory_feed(candidates=60, head=400))
    chosen: list[object] = []

    def hear(message: Message) -> None:
        # The hook hears a message once for each widget that it bubbles through.
        if isinstance(message, CandidateTable.Chosen) and chosen[-1:] != [message.candidate]:
            chosen.append(message.candidate)

    async with d.app.run_test(size=NARROW, message_hook=hear) as pilot:
        await pilot.press("down", "down", "down")
        table = d.app.screen.query_one(CandidateTable)
        name = d.app.desk.selected
        place = table.ids.index(name)
        d.feed.arrive(500)
        d.app.tick()
        await pilot.pause()
        assert d.app.desk.selected == name
        assert table.ids.index(name) > place
        assert table.scroll_offset.y == table.ids.index(name) - place
        await pilot.press("escape")
        assert d.app.desk.selected is None
    assert chosen[-2:] == [name, None]


async def test_filter_while_typing_and_escape_leaves_one_layer(desktop: Make) -> None:
    d = desktop()
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("slash", *"verdict:faster")
        table = d.app.screen.query_one(CandidateTable)
        candidates = d.feed.projection.candidates
        assert table.ids and all(candidates[name].verdict == "FASTER" for name in table.ids)
        await pilot.press("escape")
        assert d.app.desk.query.text == "verdict:faster" and table.has_focus
        await pilot.press("escape")
        assert len(table.ids) == len(candidates)
        await pilot.press("slash", *"colour:red", "enter")
        assert any("no key" in text for text in notices(d.app))


async def test_sorting_by_key_and_by_title(desktop: Make) -> None:
    d = desktop()
    async with d.app.run_test(size=WIDE) as pilot:
        table = d.app.screen.query_one(CandidateTable)
        columns = columns_for(table.size.width - 1, 7)
        x = sum(column.width + 1 for column in columns[: [c.title for c in columns].index("speedup")]) + 2
        await pilot.click(table, offset=(x, 0))
        await pilot.pause()
        assert d.app.desk.sort == "speedup"
        first = d.feed.projection.candidates[table.ids[0]]
        assert first.speedup == max(c.speedup for c in d.feed.projection.candidates.values() if c.speedup)
        await pilot.press("O")
        assert table.ids[0] != first.id


async def test_every_screen_opens_at_both_sizes(desktop: Make) -> None:
    for size in (NARROW, WIDE):
        d = desktop()
        async with d.app.run_test(size=size) as pilot:
            screens = ("population", "rewards", "devices", "diff", "lineage", "sessions", "help", "transcript")
            for key, name in zip("12345678", screens, strict=True):
                await pilot.press(key)
                await d.app.workers.wait_for_complete()
                d.app.tick()
                await pilot.pause()
                assert d.app.current_mode == name
                drawn = [pane for pane in d.app.screen.query(Pane) if pane.is_on_screen and pane.size]
                assert drawn and all(pane.draws > 0 for pane in drawn), name


async def test_an_empty_session_shows_every_screen(desktop: Make, memory_feed: Any) -> None:
    d = desktop(memory_feed(candidates=0, head=1))
    async with d.app.run_test(size=WIDE) as pilot:
        for key in "12345678adepot":
            await pilot.press(key)
            await pilot.pause()
        assert d.app.is_running


async def test_hidden_and_unchanged_panes_do_nothing(desktop: Make) -> None:
    d = desktop()
    async with d.app.run_test(size=NARROW) as pilot:
        d.app.tick()
        await pilot.pause()
        hidden = d.app.screen.query_one("#detail", DetailPane)
        d.app.desk.selected = judged(d.feed, "SLOWER")
        unseen = hidden.draws
        d.app.tick()
        assert hidden.draws == unseen
        before = {pane: pane.draws for pane in d.app.screen.query(Pane)}
        table = d.app.screen.query_one(CandidateTable)
        arranged = table.arranges
        for _ in range(5):
            d.app.tick()
        assert {pane: pane.draws for pane in d.app.screen.query(Pane)} == before
        assert table.arranges == arranged
        d.feed.arrive(40)
        d.app.tick()
        assert table.arranges == arranged + 1


async def test_the_diff_follows_the_candidate_and_jumps(desktop: Make) -> None:
    d = desktop()
    children = [c for c in d.feed.projection.candidates.values() if c.parents and c.verdict == "FASTER"]
    d.app.desk.selected = children[-1].id
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("d")
        await d.app.workers.wait_for_complete()
        await pilot.pause()
        view = d.app.screen.query_one(DiffView)
        assert view.comparison is not None and "import torch" in view.comparison.left[0]
        await pilot.press("c")
        await d.app.workers.wait_for_complete()
        await pilot.pause()
        assert view.comparison.left[0].startswith(f"// {children[-1].parents[0]}")
        assert view.place().startswith("hunk 1/")
        await pilot.press("n")
        assert view.place().startswith("hunk 2/") or "hunk 1/1" in view.place()
        await pilot.press("t")
        assert view.unified
        await pilot.press("slash", *"c000001 c000004", "enter")
        await d.app.workers.wait_for_complete()
        await pilot.pause()
        assert view.comparison.right[0].startswith("// c000004")
        await pilot.press("slash", *"c000001 nobody", "enter")
        await pilot.pause()
        assert any("nobody" in text for text in notices(d.app))


async def test_the_curve_cursor_seeks(desktop: Make) -> None:
    d = desktop()
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("2", "left", "left")
        step = d.feed.projection.policy_steps[-2]
        await pilot.press("enter")
        assert not d.feed.live and d.feed.position_seq == step.seq


async def test_sessions_open_delete_and_refuse(desktop: Make, memory_feed: Any, tmp_path: Path) -> None:
    rows = [
        SessionSummary(name="one", path=str(tmp_path / "one.wb"), task="softmax", phase="closed"),
        SessionSummary(name="bad", path="bad.wb", error="bad.wb: the file is damaged: copy it again"),
    ]
    deleted: list[Path] = []
    other = memory_feed(candidates=3, live=False)
    first = memory_feed(head=500)
    d: Any = desktop(
        first,
        sessions_provider=lambda: rows,
        delete_session=deleted.append,
        open_session=lambda path: (other, d.port),
    )
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("6")
        await d.app.workers.wait_for_complete()
        await pilot.pause()
        assert len(d.app.screen.query_one(SessionsList).rows) == 2
        await pilot.press("D", "n")
        assert deleted == []
        await pilot.press("D", "y")
        await d.app.workers.wait_for_complete()
        assert deleted == [tmp_path / "one.wb"]
        await pilot.press("down", "enter")
        assert any("damaged" in text for text in notices(d.app))
        await pilot.press("up", "enter")
        await pilot.pause()
        assert d.app.desk.feed is other and first.closed
        assert d.app.current_mode == "population"


# The action table


def test_each_action_has_words_and_its_own_key() -> None:
    assert len(BY_ID) == len(ACTIONS)
    assert check_keymap({}) == []
    for act in ACTIONS:
        assert act.label and act.tip and act.group in GROUPS
    assert {binding.id for where in ("app", "population") for binding in bindings(where)} <= set(BY_ID)  # type: ignore[union-attr]


def test_a_keymap_is_checked() -> None:
    assert "no action 'fly'" in check_keymap({"fly": "f"})[0]
    assert "both" in check_keymap({"accept": "r"})[0]


async def test_the_persons_keys_work_and_are_shown(desktop: Make) -> None:
    d = desktop(keymap={"accept": "y"})
    d.app.desk.selected = judged(d.feed)
    async with d.app.run_test(size=WIDE) as pilot:
        await pilot.press("y")
        assert isinstance(d.app.screen, DecisionDialog)
    assert key_text(BY_ID["accept"], d.app.desk.keys) == "y"
    assert any(plain(line).startswith("y ") for line in guide_lines(d.app.desk, 80))


async def test_help_names_every_action(desktop: Make) -> None:
    d = desktop()
    said = " ".join(" ".join(plain(line) for line in guide_lines(d.app.desk, 300)).split())
    assert all(act.tip in said for act in ACTIONS)


@pytest.mark.parametrize("width", [40, 80, 120, 160])
def test_bars_fit_and_always_tell_live_from_replay(desktop: Make, width: int) -> None:
    d = desktop()
    for word, move in (("LIVE", lambda: None), ("REPLAY", lambda: d.feed.seek_seq(300))):
        move()
        for line in (header_line(d.app.desk, width), transport_line(d.app.desk, width)):
            assert width_of(line) <= width and word in plain(line)
        assert width_of(folded_line(d.app.desk, width)) <= width
        assert width_of(footer_line(d.app.desk, "population", width)[0]) <= width


def test_ascii_mode_draws_no_other_signs(desktop: Make) -> None:
    d = desktop(ascii=True)
    lines = [header_line(d.app.desk, 160), transport_line(d.app.desk, 160), *tree_lines(d.app.desk)]
    text = "".join(plain(line) for line in lines).replace("×", "").replace("·", "").replace("—", "")
    assert text.isascii()


def test_an_unknown_theme_is_refused_with_the_known_ones(desktop: Make) -> None:
    with pytest.raises(ValueError, match=r"no theme 'pink'.*workbench"):
        desktop(theme="pink")


def test_lineage_shows_the_way_to_the_best(desktop: Make) -> None:
    d = desktop()
    p = d.feed.projection
    path = ancestry(p, p.best)
    assert path[-1] == p.best and not p.candidates[path[0]].parents
    said = "\n".join(plain(line) for line in tree_lines(d.app.desk))
    assert all(name in said for name in path)
