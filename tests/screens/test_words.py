from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_screens import formats, words
from workbench_screens.lines import cut, fit, fit_line, plain, spread, width_of, wrap
from workbench_screens.words import ASCII, UNICODE
from workbench_sessions.events import Origin
from workbench_sessions.projection import Candidate


def candidate(**given: object) -> Candidate:
    base: dict[str, object] = {
        "id": "c1",
        "kind": "kernel",
        "source_sha256": "",
        "origin": Origin(policy="design-space"),
        "island": 0,
        "generation": 0,
        "parents": [],
        "proposed_seq": 1,
        "proposed_at_s": 0.0,
    }
    return Candidate(**(base | given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdict", "confirmed", "text"),
    [
        ("FASTER", True, "1.84× [1.81 1.87]"),
        ("FASTER", False, "(1.84× [1.81 1.87])"),
        ("CHEATING", True, "(1.84× [1.81 1.87])"),
        ("WRONG", False, "(1.84× [1.81 1.87])"),
        ("AMBIGUOUS", False, "(1.84× [1.81 1.87])"),
        ("SLOWER", False, "1.84× [1.81 1.87]"),
    ],
)
def test_only_a_claim_is_shown_as_a_speedup(verdict: str, confirmed: bool, text: str) -> None:
    row = candidate(verdict=verdict, confirmed=confirmed, speedup=1.84, lower=1.81, upper=1.87)
    assert words.speedup(row)[0] == text


def test_pairs_count_while_timing_and_nothing_is_a_dash() -> None:
    assert words.speedup(candidate(stage="time", pairs=34))[0] == "34 pairs…"
    assert words.speedup(candidate())[0] == formats.NOTHING


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_every_verdict_has_its_own_sign(glyphs: words.Glyphs) -> None:
    assert len(set(glyphs.verdicts.values())) == len(words.VERDICT_STYLE) == len(glyphs.verdicts)


def test_ascii_is_ascii() -> None:
    signs = [*ASCII.verdicts.values(), *ASCII.lanes.values(), *ASCII.marks.values(), ASCII.bars, ASCII.on, ASCII.off]
    assert all(sign.isascii() for sign in signs)


def test_the_stage_bar_tells_how_far_it_came() -> None:
    assert words.stage(candidate(stage="verify"), UNICODE)[0] == "■■□□□ verify"
    assert words.stage(candidate(stage="done", verdict="FAILED"), UNICODE)[0] == "■□□□□ out"
    assert words.stage(candidate(stage="done", verdict="SAME"), UNICODE)[0] == "■■■■■ done"


@pytest.mark.parametrize(
    ("value", "text"),
    [(4.66e-3, "4.66 ms"), (2.5, "2.50 s"), (1.23e-7, "123 ns"), (8.5e-6, "8.50 µs"), (None, "—"), (0.0, "0 s")],
)
def test_times_take_the_unit_that_fits(value: float | None, text: str) -> None:
    assert formats.seconds(value) == text


@given(st.floats(1e-3, 1e5))
def test_three_significant_digits_are_within_half_a_per_cent(value: float) -> None:
    assert float(formats.significant(value)) == pytest.approx(value, rel=0.006)


@given(st.integers(0, 359_999))
def test_a_clock_reads_back(value: int) -> None:
    assert formats.parse_clock(formats.clock(value)) == value


@pytest.mark.parametrize("text", ["", "abc", "1:xx", "1", "-5s", "1:2:3:4"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert formats.parse_clock(text) is None


@given(st.text(max_size=40), st.integers(1, 60))
def test_fitting_gives_exactly_the_width(text: str, width: int) -> None:
    line = fit_line([(text.replace("\n", " "), "")], width)
    assert width_of(line) == width


@given(st.text(alphabet="ab ★語é", max_size=40), st.integers(1, 60), st.booleans())
def test_a_cell_never_grows(text: str, width: int, right: bool) -> None:
    assert width_of([(fit(text, width, right), "")]) == width
    assert width_of([(cut(text, width), "")]) <= width


@given(st.text(alphabet="abc defg", max_size=200), st.integers(3, 30))
def test_wrapping_keeps_every_letter(text: str, width: int) -> None:
    rows = wrap(text, width)
    assert all(len(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


def test_the_right_side_gives_way() -> None:
    assert plain(spread([("left", "")], [("right", "")], 12)) == "left   right"
    assert plain(spread([("left", "")], [("right", "")], 6)) == "left  "


def test_a_strip_leaves_the_unknown_blank() -> None:
    assert words.strip([None, 0.0, 1.0], 3, UNICODE) == " ▁█"
