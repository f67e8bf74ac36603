"""Labels are badges: named in a row, explained below, and never drawn as an alarm."""

from __future__ import annotations

from workbench_screens.detail import badge_lines
from workbench_screens.lines import plain
from workbench_sessions.projection import Details, Finding

THREAD = Finding("advice", "label", "starts threads: std::thread (line 3)", {"kind": "thread", "line": 3, "rows": "2"})
CACHE = Finding("advice", "label", "may answer from an earlier call: x (line 9)", {"kind": "cache", "line": 9})
LIBRARY = Finding("library", "label", "83% of its time is spent in library calls: aten::mm 99%")
CHEAT = Finding("hidden-work", "cheat", "worked on the processor while no call was running")


def test_badges_are_named_by_their_kind() -> None:
    lines = badge_lines(Details(findings=[THREAD, CHEAT, LIBRARY, CACHE, THREAD]), 200)
    assert plain(lines[0]) == "[thread] [library] [cache]"
    assert [plain(line).strip() for line in lines[1:]] == [
        "thread: starts threads: std::thread (line 3)",
        "library: 83% of its time is spent in library calls: aten::mm 99%",
        "cache: may answer from an earlier call: x (line 9)",
        "thread: starts threads: std::thread (line 3)",
    ]


def test_they_are_no_alarm() -> None:
    styles = {style for line in badge_lines(Details(findings=[THREAD, LIBRARY]), 60) for _, style in line}
    assert styles == {"accent", "muted"}


def test_without_labels_there_is_nothing() -> None:
    assert badge_lines(Details(findings=[CHEAT]), 80) == []


def test_they_fit_a_narrow_pane() -> None:
    lines = badge_lines(Details(findings=[THREAD, LIBRARY, CACHE]), 24)
    assert all(len(plain(line)) <= 24 for line in lines)
