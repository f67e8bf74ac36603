"""Prompts in words: state, tokens, cost, what came of them, how the endpoints do. Pure; panes draw what they say."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping

from msgspec import Struct

from workbench_screens import formats, words
from workbench_screens.lines import Line, Span
from workbench_screens.query import Predicate, Vocabulary
from workbench_screens.words import Glyphs
from workbench_sessions.projection import Candidate, Projection, Request

OPEN = ("waiting", "streaming")
REASONS_CARRIED = 6
"""So many of the newest reasons of people go into a prompt."""


class Asked(Struct, frozen=True):
    """A prompt with the candidates that came of it. `holding`: hashes of texts by a word that was looked for."""

    request: Request
    candidates: tuple[Candidate, ...]
    holding: Mapping[str, frozenset[str]] = {}


def asked(p: Projection, request: Request, holding: Mapping[str, frozenset[str]] | None = None) -> Asked:
    found = tuple(p.candidates[name] for name in request.candidates if name in p.candidates)
    return Asked(request, found, holding or {})


def best_of(candidates: Iterable[Candidate]) -> Candidate | None:
    """The one a person wants to hear of: the fastest claim, else the fastest measured, else the first."""
    best: Candidate | None = None
    for one in candidates:
        if best is None or _worth(one) > _worth(best):
            best = one
    return best


def _worth(c: Candidate) -> tuple[bool, bool, float]:
    return words.claimed(c), c.verdict not in ("CHEATING", "WRONG", "FAILED"), c.speedup or 0.0


def waiting_s(request: Request, now_s: float) -> float:
    """Seconds since it was sent, or as told when it is over."""
    if request.seconds is not None:
        return request.seconds
    return max(0.0, (request.ended_at_s or now_s) - request.sent_at_s)


def state(request: Request, now_s: float, glyphs: Glyphs) -> Span:
    """One word on where it stands, never by colour alone."""
    again = f" again {request.restarts}" if request.restarts else ""
    if request.state == "waiting":
        return f"{glyphs.idle} asked{again}", "muted"
    if request.state == "streaming":
        return f"{glyphs.live} writing{again}", "pending"
    if request.state == "lost":
        return f"{glyphs.off} lost", "rejected"
    if request.state == "failed":
        return f"{glyphs.verdicts['FAILED']} no answer", "rejected"
    finish = {reply.finish for reply in request.replies}
    if "refusal" in finish:
        return f"{glyphs.verdicts['FAILED']} refused", "rejected"
    if not request.candidates and any(reply.problem for reply in request.replies):
        word = "cut off" if "length" in finish else "unusable"
        return f"{glyphs.verdicts['WRONG']} {word}", "slower"
    return f"{glyphs.accepted} answered", ""


def outcome(one: Asked, glyphs: Glyphs, now_s: float) -> Line:
    """What came of it: the best candidate, else the state."""
    best = best_of(one.candidates)
    if best is None:
        return [state(one.request, now_s, glyphs)]
    sign, style = words.verdict(best, glyphs)
    number, number_style = words.speedup(best)
    more = f" +{len(one.candidates) - 1}" if len(one.candidates) > 1 else ""
    return [
        (best.id + more + " ", ""),
        (sign.split(" ")[0] + " ", style),
        (number.split(" [")[0].strip(), number_style),
    ]


def scores(request: Request, glyphs: Glyphs) -> str:
    """What the prompt showed: `0.98→1.11`."""
    return glyphs.arrow.join(formats.significant(one.score) for one in request.exemplars)


def tokens(request: Request, glyphs: Glyphs) -> str:
    """`1.15k→600`; while it streams about a token for four characters, marked so."""
    if request.tokens_in is None and request.tokens_out is None:
        return f"~{formats.count(request.streamed // 4)}" if request.streamed else formats.NOTHING
    sign = "~" if request.estimated else ""
    return f"{sign}{formats.count(request.tokens_in)}{glyphs.arrow}{formats.count(request.tokens_out)}"


# Filtering


def _anywhere(wanted: str) -> Predicate:
    def test(one: Asked) -> bool:
        r = one.request
        texts = (r.prompt, r.model, r.endpoint, r.patch, r.repairs, *r.candidates, *(x.problem for x in r.replies))
        return any(wanted in text.lower() for text in texts)

    return test


class _Text:
    """`text:word`: prompts whose prompt, answer or reasoning holds the word, as far as it was looked for."""

    def __call__(self, one: Asked) -> list[str]:
        r = one.request
        hashes = {r.text_sha256, *(x.text_sha256 for x in r.replies), *(x.reasoning_sha256 for x in r.replies)}
        return [word for word, found in one.holding.items() if hashes & found]


REQUESTS = Vocabulary(
    texts={
        "id": lambda one: [one.request.prompt],
        "model": lambda one: [one.request.model],
        "endpoint": lambda one: [one.request.endpoint],
        "patch": lambda one: [one.request.patch],
        "state": lambda one: [one.request.state],
        "finish": lambda one: [reply.finish for reply in one.request.replies],
        "problem": lambda one: [reply.problem for reply in one.request.replies],
        "exemplar": lambda one: [shown.candidate for shown in one.request.exemplars],
        "candidate": lambda one: one.request.candidates,
        "parent": lambda one: one.request.parents,
        "verdict": lambda one: [c.verdict or "none" for c in one.candidates] or ["none"],
        "text": _Text(),
    },
    numbers={
        "speedup": lambda one: max((c.speedup for c in one.candidates if c.speedup is not None), default=None),
        "tokens": lambda one: _sum(one.request.tokens_in, one.request.tokens_out),
        "out": lambda one: one.request.tokens_out,
        "cost": lambda one: one.request.cost,
        "seconds": lambda one: one.request.seconds,
        "candidates": lambda one: len(one.request.candidates),
        "answers": lambda one: len(one.request.replies),
        "group": lambda one: one.request.group,
    },
    states={
        "open": lambda one: one.request.state in OPEN,
        "failed": lambda one: one.request.state in ("failed", "lost"),
        "barren": lambda one: one.request.state not in OPEN and not one.request.candidates,
        "repair": lambda one: bool(one.request.repairs),
        "reasoned": lambda one: any(reply.reasoning_sha256 for reply in one.request.replies),
    },
    whole=("patch", "state", "finish", "verdict"),
    anywhere=_anywhere,
)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)


# How it goes


def spent(p: Projection) -> list[str]:
    """Tokens and money spent of what may be; nothing where no model was asked."""
    caps, out = p.header.budget, []
    if p.spent_tokens or caps.tokens:
        cap = f"/{formats.count(caps.tokens)}" if caps.tokens else ""
        out.append(f"{formats.count(p.spent_tokens)}{cap} tokens")
    if p.spent_money or caps.money:
        cap = f"/{formats.money(caps.money)}" if caps.money else ""
        out.append(f"money {formats.money(p.spent_money)}{cap}")
    return out


def down(p: Projection) -> tuple[float, str] | None:
    """Since when (unix seconds) and why nothing can be asked: the engine paused by itself and said why."""
    if p.header.phase != "paused" or not p.header.phase_reason:
        return None
    since = next((mark.at_s for mark in reversed(p.marks) if mark.kind == "phase"), p.at_s)
    return since, p.header.phase_reason


class Traffic(Struct, frozen=True):
    """How one endpoint does: prompts open (and of these writing), whole answers, failures, median seconds."""

    endpoint: str
    waiting: int
    writing: int
    answered: int
    failed: int
    again: int
    median_s: float | None


def traffic(requests: Iterable[Request]) -> list[Traffic]:
    """By endpoint, the busiest first."""
    by: dict[str, list[Request]] = {}
    for one in requests:
        by.setdefault(one.endpoint or one.model or "?", []).append(one)
    out = []
    for name, rows in by.items():
        took = [row.seconds for row in rows[-200:] if row.seconds]
        states = [row.state for row in rows]
        out.append(
            Traffic(
                endpoint=name,
                waiting=states.count("waiting"),
                writing=states.count("streaming"),
                answered=states.count("answered"),
                failed=states.count("failed") + states.count("lost"),
                again=sum(row.restarts for row in rows if row.state in OPEN),
                median_s=statistics.median(took) if took else None,
            )
        )
    return sorted(out, key=lambda one: (-(one.waiting + one.writing), -one.answered))


def altogether(flow: list[Traffic]) -> Traffic:
    """All endpoints as one, for a line that has no room for each."""
    return Traffic(
        endpoint=f"{len(flow)} endpoints",
        waiting=sum(one.waiting for one in flow),
        writing=sum(one.writing for one in flow),
        answered=sum(one.answered for one in flow),
        failed=sum(one.failed for one in flow),
        again=sum(one.again for one in flow),
        median_s=None,
    )


def traffic_span(one: Traffic, glyphs: Glyphs) -> Line:
    """`coder-30b: 3 writing, 1 asked, 60 answered in 3.1 s, 2 failed`."""
    parts = []
    if one.writing:
        parts.append(f"{one.writing} writing")
    if one.waiting:
        parts.append(f"{one.waiting} asked")
    took = f" in {formats.seconds(one.median_s)}" if one.median_s is not None else ""
    parts.append(f"{one.answered} answered{took}")
    line: Line = [(f"{one.endpoint}: ", "muted"), (", ".join(parts), "pending" if one.writing or one.waiting else "")]
    if one.again:
        line.append((f", asked again {one.again}×", "slower"))
    if one.failed:
        line.append((f", {glyphs.verdicts['FAILED']} {one.failed} failed", "rejected"))
    return line


def reasons(p: Projection) -> list[Candidate]:
    """Decisions whose reason goes into the next prompts, newest first."""
    said = [c for c in p.candidates.values() if c.decision in ("accepted", "rejected") and c.decision_reason]
    return sorted(said, key=lambda c: c.changed_seq, reverse=True)[:REASONS_CARRIED]
