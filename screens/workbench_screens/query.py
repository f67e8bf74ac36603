"""The filter language of the lists: `verdict:faster island:2 speedup>1.5 -origin:random online`.

Terms are joined by "and". `key:a,b` takes any of the values, `key>number` compares, a bare word is looked for in id,
origin, parents and reason, and a leading `-` turns a term around. Quotes keep spaces. Upper and lower case are equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from workbench_screens import words
from workbench_sessions.projection import Candidate

Predicate = Callable[[Any], bool]
_TERM = re.compile(r"^([a-z_]+)(:|>=|<=|>|<|=)(.*)$", re.IGNORECASE | re.DOTALL)


class QueryError(ValueError):
    """A filter that means nothing; `str()` says what and what would do."""


class Query(Struct, frozen=True):
    """A parsed filter. The empty one takes everything."""

    text: str
    terms: tuple[Predicate, ...] = ()

    def matches(self, row: Any) -> bool:
        return all(term(row) for term in self.terms)


class Vocabulary(Struct, frozen=True):
    """What can be asked of one kind of row. `whole`: keys whose values must begin with what was typed; the others
    contain it. `anywhere` makes the predicate of a bare word (lower case).
    """

    texts: Mapping[str, Callable[[Any], list[str]]]
    numbers: Mapping[str, Callable[[Any], float | None]]
    states: Mapping[str, Predicate]
    whole: tuple[str, ...]
    anywhere: Callable[[str], Predicate]


TEXTS: dict[str, Callable[[Candidate], list[str]]] = {
    "id": lambda c: [c.id],
    "verdict": lambda c: [c.verdict or "none"],
    "stage": lambda c: [c.stage],
    "origin": lambda c: [words.origin(c)],
    "policy": lambda c: [c.origin.policy],
    "parent": lambda c: c.parents,
    "decision": lambda c: [c.decision or "none"],
    "device": lambda c: [c.device or "none"],
    "reason": lambda c: [c.reason],
    "kind": lambda c: [c.kind],
}
NUMBERS: dict[str, Callable[[Candidate], float | None]] = {
    "speedup": lambda c: c.speedup,
    "island": lambda c: c.island,
    "gen": lambda c: c.generation,
    "group": lambda c: c.group,
    "pairs": lambda c: c.pairs,
    "findings": lambda c: c.findings,
    "reward": lambda c: c.reward,
    "evaluation": lambda c: c.evaluation,
}
STATES: dict[str, Predicate] = {
    "pinned": lambda c: c.pinned,
    "review": lambda c: c.decision == "review",
    "accepted": lambda c: c.decision == "accepted",
    "rejected": lambda c: c.decision == "rejected",
    "confirmed": lambda c: c.confirmed,
    "person": lambda c: c.origin.policy == "person",
    "done": lambda c: c.stage == "done",
    "running": lambda c: c.stage not in ("done", "proposed"),
    "cheating": lambda c: c.verdict == "CHEATING",
}
WHOLE = ("verdict", "stage", "decision", "kind", "device")


def split_terms(text: str) -> list[str]:
    """Terms at spaces outside double quotes, quotes removed. An open quote runs to the end."""
    terms: list[str] = []
    current, quoted, started = "", False, False
    for char in text:
        if char == '"':
            quoted, started = not quoted, True
        elif char.isspace() and not quoted:
            if started:
                terms.append(current)
            current, started = "", False
        else:
            current, started = current + char, True
    if started:
        terms.append(current)
    return [term for term in terms if term]


def _anywhere(wanted: str) -> Predicate:
    def test(c: Candidate) -> bool:
        if wanted in c.id.lower() or wanted in c.origin.policy.lower() or wanted in c.reason.lower():
            return True
        return wanted in (c.origin.person or "").lower() or any(wanted in parent.lower() for parent in c.parents)

    return test


CANDIDATES = Vocabulary(texts=TEXTS, numbers=NUMBERS, states=STATES, whole=WHOLE, anywhere=_anywhere)


def parse(text: str, vocabulary: Vocabulary = CANDIDATES) -> Query:
    """Raises `QueryError` naming the term."""
    return Query(text=text.strip(), terms=tuple(_term(term, vocabulary) for term in split_terms(text)))


def _term(term: str, vocabulary: Vocabulary) -> Predicate:
    if term.startswith("-") and len(term) > 1:
        inner = _term(term[1:], vocabulary)
        return lambda row: not inner(row)
    found = _TERM.match(term)
    if found is None:
        return vocabulary.anywhere(term.lower())
    key, operator, value = found[1].lower(), found[2], found[3].strip().lower()
    if not value:
        raise QueryError(f"{term}: a value is missing after {operator}")
    if key == "is":
        return _state(term, value, vocabulary)
    if key in vocabulary.numbers:
        return _number(term, vocabulary.numbers[key], operator, value)
    if key in vocabulary.texts and operator in (":", "="):
        return _text(vocabulary.texts[key], value.split(","), key in vocabulary.whole)
    if key in vocabulary.texts:
        raise QueryError(f"{term}: {key} is a word; write {key}:{value}")
    known = ", ".join(["is", *vocabulary.texts, *vocabulary.numbers])
    raise QueryError(f"{term}: no key {key!r}; there are {known}")


def _state(term: str, value: str, vocabulary: Vocabulary) -> Predicate:
    if value not in vocabulary.states:
        raise QueryError(f"{term}: is: takes {', '.join(vocabulary.states)}")
    return vocabulary.states[value]


def _text(get: Callable[[Any], list[str]], wanted: list[str], whole: bool) -> Predicate:
    wanted = [one for one in wanted if one]
    if whole:
        return lambda row: any(text.lower().startswith(one) for text in get(row) for one in wanted)
    return lambda row: any(one in text.lower() for text in get(row) for one in wanted)


def _number(term: str, get: Callable[[Any], float | None], operator: str, value: str) -> Predicate:
    try:
        numbers = [float(part.rstrip("x×")) for part in value.split(",")]
    except ValueError:
        raise QueryError(f"{term}: {value!r} is no number") from None
    first = numbers[0]

    def test(row: Any) -> bool:
        have = get(row)
        if have is None:
            return False
        if operator == ">":
            return have > first
        if operator == ">=":
            return have >= first
        if operator == "<":
            return have < first
        if operator == "<=":
            return have <= first
        return have in numbers

    return test
