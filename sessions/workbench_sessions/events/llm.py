"""Models: what they were asked, what they said, how their endpoints and servers do."""

from __future__ import annotations

from workbench_sessions.events.base import Event
from workbench_sessions.events.search import Exemplar


class PromptSent(Event, frozen=True):
    """A model was asked. The rendered prompt is stored under its hash.

    `patch`: "full", "diff", "cross", or "repair" of the candidate or prompt named in `repairs`. `group` is that of the
    candidates that come of it; `answers` how many were asked for.
    """

    prompt: str
    model: str
    text_sha256: str
    endpoint: str = ""
    patch: str = ""
    group: int | None = None
    parents: list[str] = []
    exemplars: list[Exemplar] = []
    repairs: str = ""
    answers: int = 1


class ResponseStreamed(Event, frozen=True):
    """More of the first answer, while it is written. `restart`: it starts afresh (the endpoint was asked again)."""

    prompt: str
    text: str
    restart: bool = False


class ResponseReceived(Event, frozen=True):
    """One answer, whole. Tokens, cost and seconds of a request stand in its first answer (0 for the others).

    `cost` None: the model has no price. `finish`: "stop", "length" (cut off), "refusal", "other", or "failed" (no
    answer came, `problem` says why). `analysis` and `design` are the sections of that name, capped. `problem` says why
    no candidate came of it.
    """

    prompt: str
    model: str
    text_sha256: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    seconds: float | None = None
    candidates: list[str] = []
    answer: int = 0
    endpoint: str = ""
    finish: str = ""
    cached_tokens: int | None = None
    first_token_s: float | None = None
    estimated: bool = False
    reasoning_sha256: str = ""
    analysis: str = ""
    design: str = ""
    problem: str = ""
    wasted_tokens: int = 0
    wasted_cost: float = 0.0
    """Of tries that failed before this answer came (or none did)."""
    requests: int | None = None
    """Made for the prompt, tries that failed included (0 in all but its first answer). None: not told."""
    tokens_sha256: str = ""
    """Names the stored `{"ids": [...], "logprobs": [...]}` of the sampled tokens, where the server told them."""


class RetryScheduled(Event, frozen=True):
    """What was asked in vain, or may not be asked yet, is asked in `wait_s` seconds.

    `prompt` "" is the run itself: its policy is away and is tried again. `limited`: the endpoint wants fewer requests
    (429). `attempt` counts from 1, of `attempts` (0 = no limit).
    """

    prompt: str
    wait_s: float
    reason: str
    endpoint: str = ""
    limited: bool = False
    attempt: int = 1
    attempts: int = 0


class OpinionReceived(Event, frozen=True):
    """The judge's model was asked about a candidate; `problem` says why no answer came. Costs as of an answer."""

    candidate: str
    model: str
    prompt_sha256: str = ""
    text_sha256: str = ""
    endpoint: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    seconds: float = 0.0
    requests: int = 0
    wasted_tokens: int = 0
    wasted_cost: float = 0.0
    problem: str = ""


class ExchangeRecorded(Event, frozen=True):
    """One request to a model and its whole answer, so that the run can be done again without the model.

    `request` is the sha256 of the request's content, `n` the answers asked for; the answer is stored by its hash.
    """

    request: str
    exchange_sha256: str
    n: int = 1
    seed: int | None = None


class ServerReported(Event, frozen=True):
    """What a model server of this run is at: `state` is "starting", "ready", "ended" or "failed"."""

    server: str
    state: str
    text: str
    seconds: float = 0.0
