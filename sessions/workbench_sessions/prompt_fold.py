"""The part of the fold that follows prompts: asked, streaming, answered, and the candidates that came of them.

Texts are never kept here: an answer of 200,000 tokens costs a projection its length as a number. Viewers read prompts
and answers from the session by their hash, and what is still streaming from the events themselves
(`SessionReader.streamed`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from workbench_sessions import events as ev
from workbench_sessions.events import Event, Stamped
from workbench_sessions.projection import Projection, Reply, Request, Spending, Wait

PROBLEM_KEPT = 300
OPEN = frozenset(("waiting", "streaming"))


def sent(p: Projection, s: Stamped, e: ev.PromptSent) -> None:
    p.prompts += 1
    p.spent_requests += 1
    # One asked again under its name (an engine that resumed) goes to the end, as the newest.
    p.requests.pop(e.prompt, None)
    p.requests[e.prompt] = Request(
        prompt=e.prompt,
        model=e.model,
        text_sha256=e.text_sha256,
        sent_seq=s.seq,
        sent_at_s=s.at_s,
        changed_seq=s.seq,
        endpoint=e.endpoint,
        patch=e.patch,
        group=e.group,
        parents=e.parents,
        exemplars=e.exemplars,
        repairs=e.repairs,
        asked=e.answers,
    )


def streamed(p: Projection, s: Stamped, e: ev.ResponseStreamed) -> None:
    row = p.requests.get(e.prompt)
    if row is None or row.state not in OPEN:
        return
    p.requests[e.prompt] = replace(
        row,
        state="streaming",
        streamed=len(e.text) + (0 if e.restart else row.streamed),
        restarts=row.restarts + e.restart,
        first_at_s=s.at_s if row.first_at_s is None else row.first_at_s,
        wait=None,
        changed_seq=s.seq,
    )


def received(p: Projection, s: Stamped, e: ev.ResponseReceived) -> None:
    p.spent_tokens += (e.tokens_in or 0) + (e.tokens_out or 0) + e.wasted_tokens
    p.spent_money += (e.cost or 0.0) + e.wasted_cost
    if e.requests is not None and e.answer == 0:
        # One was counted when the prompt was sent; a prompt that met a cap was never asked at all.
        p.spent_requests += e.requests - 1
    row = p.requests.get(e.prompt)
    if row is None:
        return
    reply = Reply(
        answer=e.answer,
        finish=e.finish,
        text_sha256=e.text_sha256,
        reasoning_sha256=e.reasoning_sha256,
        problem=e.problem[:PROBLEM_KEPT],
    )
    failed = e.finish == "failed"
    p.requests[e.prompt] = replace(
        row,
        model=e.model or row.model,
        endpoint=e.endpoint or row.endpoint,
        state="failed" if failed else "answered",
        replies=[*row.replies, reply],
        candidates=[*row.candidates, *(name for name in e.candidates if name not in row.candidates)],
        tokens_in=_sum(row.tokens_in, e.tokens_in),
        tokens_out=_sum(row.tokens_out, e.tokens_out),
        cached_tokens=_sum(row.cached_tokens, e.cached_tokens),
        cost=row.cost if e.cost is None else (row.cost or 0.0) + e.cost,
        seconds=row.seconds if not e.seconds else (row.seconds or 0.0) + e.seconds,
        first_token_s=row.first_token_s if e.first_token_s is None else e.first_token_s,
        estimated=row.estimated or e.estimated,
        wasted_tokens=row.wasted_tokens + e.wasted_tokens,
        wasted_cost=row.wasted_cost + e.wasted_cost,
        ended_at_s=s.at_s,
        wait=None,
        changed_seq=s.seq,
    )


def retried(p: Projection, s: Stamped, e: ev.RetryScheduled) -> None:
    wait = Wait(s.at_s + e.wait_s, e.reason[:PROBLEM_KEPT], e.limited, e.attempt, e.attempts)
    if not e.prompt:
        p.wait = wait
        return
    row = p.requests.get(e.prompt)
    if row is not None and row.state in OPEN:
        p.requests[e.prompt] = replace(row, wait=wait, changed_seq=s.seq)


def judged(p: Projection, s: Stamped, e: ev.OpinionReceived) -> None:
    """The judge spends of the same budget."""
    tokens, money = e.tokens_in + e.tokens_out + e.wasted_tokens, (e.cost or 0.0) + e.wasted_cost
    p.spent_tokens += tokens
    p.spent_money += money
    p.spent_requests += e.requests
    before = p.judged
    p.judged = Spending(before.tokens + tokens, before.money + money, before.requests + e.requests)


def came_of(p: Projection, s: Stamped, e: ev.CandidateProposed) -> None:
    """Links a candidate to the prompt that its origin names."""
    row = p.requests.get(e.origin.prompt) if e.origin.prompt else None
    if row is not None and e.candidate not in row.candidates:
        p.requests[row.prompt] = replace(row, candidates=[*row.candidates, e.candidate], changed_seq=s.seq)


def lose_open(p: Projection, s: Stamped) -> None:
    """Nobody listens any more: the engine that asked is gone."""
    for row in [row for row in p.requests.values() if row.state in OPEN]:
        p.requests[row.prompt] = replace(row, state="lost", ended_at_s=s.at_s, wait=None, changed_seq=s.seq)


def _sum(before: int | None, more: int | None) -> int | None:
    return before if more is None else (before or 0) + more


HANDLERS: dict[type[Event], Callable[[Projection, Stamped, Any], None]] = {
    ev.RetryScheduled: retried,
    ev.OpinionReceived: judged,
    ev.PromptSent: sent,
    ev.ResponseStreamed: streamed,
    ev.ResponseReceived: received,
}
