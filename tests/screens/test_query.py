from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_screens.ordering import SORTS, arrange
from workbench_screens.query import NUMBERS, TEXTS, Query, QueryError, parse, split_terms
from workbench_sessions.events import Origin
from workbench_sessions.projection import Candidate


def candidate(name: str = "c1", **given: object) -> Candidate:
    base: dict[str, object] = {
        "id": name,
        "kind": "kernel",
        "source_sha256": "",
        "origin": Origin(policy="design-space"),
        "island": 1,
        "generation": 3,
        "parents": ["c0"],
        "proposed_seq": 1,
        "proposed_at_s": 0.0,
    }
    return Candidate(**(base | given))  # type: ignore[arg-type]


FASTER = candidate("c1", verdict="FASTER", speedup=1.84, island=2, stage="done")
WRONG = candidate("c2", verdict="WRONG", reason="tail differs", stage="done", origin=Origin(policy="random"))
RUNNING = candidate("c3", stage="time", pinned=True)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", [1, 1, 1]),
        ("verdict:faster", [1, 0, 0]),
        ("verdict:faster,wrong", [1, 1, 0]),
        ("verdict:none", [0, 0, 1]),
        ("-verdict:faster", [0, 1, 1]),
        ("island:2 speedup>1.5", [1, 0, 0]),
        ("speedup>1.9", [0, 0, 0]),
        ("speedup<=1.84×", [1, 0, 0]),
        ("TAIL", [0, 1, 0]),
        ('reason:"tail d"', [0, 1, 0]),
        ("is:pinned", [0, 0, 1]),
        ("is:running", [0, 0, 1]),
        ("origin:rand", [0, 1, 0]),
        ("parent:c0 gen=3", [1, 1, 1]),
    ],
)
def test_terms_select(text: str, wanted: list[int]) -> None:
    query = parse(text)
    assert [int(query.matches(c)) for c in (FASTER, WRONG, RUNNING)] == wanted


@pytest.mark.parametrize("text", ["colour:red", "speedup>fast", "is:happy", "verdict:", "verdict>3"])
def test_nonsense_names_the_term(text: str) -> None:
    with pytest.raises(QueryError, match=text.split(":")[0].split(">")[0]):
        parse(text)


@given(st.text(max_size=60))
def test_any_text_is_a_query_or_one_clear_line(text: str) -> None:
    try:
        query = parse(text)
    except QueryError as error:
        assert str(error)
    else:
        assert query.matches(FASTER) in (True, False)


@given(st.lists(st.sampled_from(["verdict:faster", "island:1", "is:pinned", "c2", "speedup>1"]), max_size=4))
def test_terms_are_and_and_minus_turns_around(terms: list[str]) -> None:
    for one in (FASTER, WRONG, RUNNING):
        assert parse(" ".join(terms)).matches(one) == all(parse(term).matches(one) for term in terms)
        for term in terms:
            assert parse("-" + term).matches(one) != parse(term).matches(one)


@given(st.lists(st.text(alphabet=st.characters(blacklist_characters='"', blacklist_categories=("Z", "C")), min_size=1)))
def test_quoting_keeps_terms_whole(terms: list[str]) -> None:
    assert split_terms(" ".join(f'"{term}"' for term in terms)) == terms


def test_no_key_is_both_word_and_number() -> None:
    assert not set(TEXTS) & set(NUMBERS)


values = st.one_of(st.none(), st.floats(0.1, 9))


@given(st.lists(values, max_size=20), st.sampled_from(sorted(SORTS)), st.booleans())
def test_sorting_loses_nothing_and_puts_the_unknown_last(
    speedups: list[float | None], sort: str, reverse: bool
) -> None:
    rows = [candidate(f"c{i}", speedup=s, verdict="SLOWER" if s else None) for i, s in enumerate(speedups)]
    ids = arrange(rows, Query(""), sort, reverse)
    assert sorted(ids) == sorted(row.id for row in rows)
    if sort == "speedup":
        by_id = {row.id: row.speedup for row in rows}
        known = [by_id[name] for name in ids if by_id[name] is not None]
        assert known == sorted((k for k in known if k is not None), reverse=not reverse)
        assert all(by_id[name] is None for name in ids[len(known) :])


def test_a_cheat_never_leads_the_speedups() -> None:
    cheat = candidate("c9", verdict="CHEATING", speedup=9.4)
    assert arrange([cheat, FASTER], Query(""), "speedup") == ["c1", "c9"]
