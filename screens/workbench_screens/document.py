"""One prompt and what came of it as a document: facts, exemplars, candidates, and texts that fold. Pure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from workbench_screens import asking, formats, words
from workbench_screens.asking import Asked
from workbench_screens.lines import Line, plain, safe, wrap
from workbench_screens.rows import folded_code, prose
from workbench_screens.words import Glyphs
from workbench_sessions.events import ResponseReceived

FOLDED = frozenset(("prompt", "reasoning", "whole"))
"""Folded until opened."""

KEPT_PARTS = 12


class Stop(Struct, frozen=True):
    """A row that the cursor stops at: `kind` "fold" (target: the part), "candidate" or "prompt" (target: its id)."""

    row: int
    kind: str
    target: str


class Document(Struct, frozen=True):
    """`bodies` are the parts with their whole text, for searching what is folded."""

    rows: list[Line]
    stops: tuple[Stop, ...]
    bodies: tuple[tuple[str, str], ...]

    def rows_with(self, needle: str) -> list[int]:
        """Rows in which a match begins, whatever its case; one may run over a wrapped line's end."""
        needle = needle.lower()
        if not needle:
            return []
        texts = [plain(row).lower() for row in self.rows]
        found = []
        for i, text in enumerate(texts):
            if needle in text:
                found.append(i)
                continue
            if i + 1 < len(texts) and text:
                joined = f"{text} {texts[i + 1]}"
                at = joined.find(needle, max(0, len(text) - len(needle)))
                if 0 <= at < len(text):
                    found.append(i)
        return found


class Material(Struct, frozen=True):
    """What was read of one prompt. `answer` is the number of the one shown; `streamed` rows of what is being written.

    `code` are the highlighted lines of `source`, the file that came of the answer; empty until a thread made them.
    """

    one: Asked
    prompt: str = ""
    answers: tuple[ResponseReceived, ...] = ()
    answer: int = 0
    text: str = ""
    reasoning: str = ""
    source: str = ""
    code: tuple[Line, ...] = ()
    streamed: list[Line] | None = None
    missing: str = ""


class _Page:
    """Rows as they are put down."""

    def __init__(self, width: int, folded: frozenset[str], glyphs: Glyphs, kept: Kept) -> None:
        self.width, self.folded, self.glyphs, self.kept = width, folded, glyphs, kept
        self.rows: list[Line] = []
        self.stops: list[Stop] = []
        self.bodies: list[tuple[str, str]] = []

    def say(self, text: str, style: str = "") -> None:
        self.rows.extend([(part, style)] for part in wrap(safe(" ".join(text.split())), self.width))

    def link(self, kind: str, target: str, line: Line) -> None:
        self.stops.append(Stop(len(self.rows), kind, target))
        self.rows.append(line)

    def part(
        self, name: str, title: str, text: str, make: Callable[[], list[Line]] | None = None, version: object = 0
    ) -> None:
        """A part that folds; nothing when there is no text."""
        if not text.strip():
            return
        closed = name in self.folded
        sign = ("> " if closed else "v ") if self.glyphs.ascii else ("▸ " if closed else "▾ ")
        lines = len(text.splitlines())
        size = f"  {lines} line{'s' if lines != 1 else ''}, {formats.count(len(text))} characters"
        self.rows.append([])
        self.link("fold", name, [(sign + title, "accent bold"), (size, "muted")])
        self.bodies.append((name, text))
        if not closed:
            key = (name, self.width, len(text), hash(text), version)
            self.rows.extend(self.kept.rows(key, make or (lambda: prose(text, self.width))))


class Kept:
    """Rows of texts that were wrapped already; those of the last few parts. A page that grows draws the rest again."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], list[Line]] = {}

    def rows(self, key: tuple[object, ...], make: Callable[[], list[Line]]) -> list[Line]:
        found = self._rows.pop(key, None)
        if found is None:
            found = make()
            while len(self._rows) >= KEPT_PARTS:
                del self._rows[next(iter(self._rows))]
        self._rows[key] = found
        return found


def document(
    material: Material, width: int, folded: frozenset[str], now_s: float, glyphs: Glyphs, kept: Kept | None = None
) -> Document:
    """All rows for a width in cells."""
    page = _Page(max(10, width), folded, glyphs, kept or Kept())
    _facts(page, material, now_s)
    _shown(page, material)
    _made(page, material)
    page.part("prompt", "Prompt", material.prompt)
    if material.streamed is not None:
        page.rows.append([])
        page.rows.append([("Answer so far", "accent bold"), ("  it grows while it is written", "muted")])
        page.rows.extend(material.streamed)
    elif material.answers:
        _answer(page, material)
    if material.missing:
        page.say(material.missing, "rejected")
    return Document(rows=page.rows, stops=tuple(page.stops), bodies=tuple(page.bodies))


def _facts(page: _Page, m: Material, now_s: float) -> None:
    r, glyphs = m.one.request, page.glyphs
    text, style = asking.state(r, now_s, glyphs)
    took = formats.seconds(asking.waiting_s(r, now_s))
    head: Line = [(r.prompt + "  ", "bold"), (text, f"{style} bold"), (f"  {took}", "muted")]
    page.rows.append(head)
    many = f"{r.asked} answers wanted" if r.asked > 1 else ""
    group = f"group {r.group}" if r.group is not None else ""
    where = f"at {r.endpoint}" if r.endpoint and r.endpoint != r.model else ""
    page.say(" · ".join(filter(None, (r.patch, r.model, where, group, many))), "muted")
    if r.repairs.startswith("p"):
        page.link("prompt", r.repairs, [("mends the answer to ", "muted"), (r.repairs, "accent")])
    elif r.repairs:
        page.link("candidate", r.repairs, [("mends ", "muted"), (r.repairs, "accent")])
    facts = [f"tokens {asking.tokens(r, glyphs)}"]
    if r.cached_tokens:
        facts.append(f"{formats.count(r.cached_tokens)} cached")
    if r.cost is not None or r.state == "answered":
        facts.append(f"cost {formats.money(r.cost)}" if r.cost is not None else "no price")
    if r.first_token_s is not None:
        facts.append(f"first word after {formats.seconds(r.first_token_s)}")
    page.say(" · ".join(facts))
    if r.wasted_tokens or r.wasted_cost:
        page.say(
            f"tries that failed before: {formats.count(r.wasted_tokens)} tokens, {formats.money(r.wasted_cost)}",
            "slower",
        )
    for reply in r.replies:
        if reply.problem:
            which = f"answer {reply.answer + 1}: " if len(r.replies) > 1 else ""
            page.say(f"{glyphs.marks['warning']} {which}{reply.problem}", "slower")


def _shown(page: _Page, m: Material) -> None:
    shown = m.one.request.exemplars
    if not shown:
        return
    page.rows.append([])
    page.rows.append([("Exemplars it was shown", "bold")])
    for one in shown:
        style = "faster" if one.role == "fast" else "slower"
        line: Line = [(f"  {one.role:<5}", style), (one.candidate, "accent"), (f"  {formats.ratio(one.score)}", style)]
        page.link("candidate", one.candidate, line)


def _made(page: _Page, m: Material) -> None:
    if not m.one.candidates:
        return
    page.rows.append([])
    page.rows.append([("Candidates that came of it", "bold")])
    for c in m.one.candidates:
        text, style = words.verdict(c, page.glyphs)
        number, number_style = words.speedup(c)
        which = f"answer {c.origin.answer + 1}  " if c.origin.answer is not None and len(m.answers) > 1 else ""
        line: Line = [
            ("  ", ""),
            (c.id + "  ", "accent"),
            (which, "muted"),
            (text + "  ", style),
            (number, number_style),
        ]
        page.link("candidate", c.id, line)
        if c.decision_reason:
            page.say(f"    {c.decision}: {c.decision_reason}", "muted")


def _answer(page: _Page, m: Material) -> None:
    told = m.answers[m.answer]
    if len(m.answers) > 1:
        page.rows.append([])
        page.rows.append([(f"Answer {m.answer + 1} of {len(m.answers)}", "bold"), ("  left and right turn", "muted")])
    sections = bool(told.analysis or told.design)
    page.part("reasoning", "Reasoning, kept apart from the answer", m.reasoning)
    page.part("analysis", "Performance analysis", told.analysis)
    page.part("design", "Algorithm design", told.design)
    if m.source:
        page.part("code", "Code, as it was judged", m.source, lambda: _code(m, page.width), bool(m.code))
    name = "whole" if sections or m.source else "answer"
    page.part(name, "Answer, as it came", m.text)


def _code(m: Material, width: int) -> list[Line]:
    bare: list[Line] = [[(line, "")] for line in m.source.expandtabs(4).split("\n")]
    return folded_code(list(m.code) or bare, width)
