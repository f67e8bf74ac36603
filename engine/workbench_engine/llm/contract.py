"""What asking a language model is: a request in, a completion out.

The client, the recorder and the choice among several endpoints all implement `Model`, so that they stack. Whoever
asks knows only this module.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "refusal", "other"]
"""Why an answer ended: by itself, at a token limit (truncated), because the model or a filter refused, else."""


class Message(Struct, frozen=True):
    """One turn of a chat."""

    role: Role
    content: str


class Structured(Struct, frozen=True):
    """The form an answer must have: a JSON schema, or a grammar where the server offers it. Exactly one is set."""

    schema: dict[str, Any] | None = None
    grammar: str | None = None
    name: str = "answer"

    def __post_init__(self) -> None:
        if (self.schema is None) == (self.grammar is None):
            raise ValueError("a structured answer needs either a JSON schema or a grammar, not both and not neither")


class Request(Struct, frozen=True):
    """What is asked. None leaves a setting to the endpoint's own; `priority` is vLLM's (lower is sooner)."""

    messages: tuple[Message, ...]
    n: int = 1
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    structured: Structured | None = None
    logprobs: bool = False
    priority: int | None = None

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"a request must ask for at least 1 answer, not {self.n}")


class Choice(Struct, frozen=True):
    """One answer. `reasoning` is what the model thought before it (kept apart, never part of `text`).

    `token_ids` and `logprobs` (natural, of the sampled tokens) are empty where the server does not give them.
    """

    text: str
    reasoning: str = ""
    finish: Finish = "stop"
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


class Completion(Struct, frozen=True):
    """What came back. `cost` is None when the model has no price; `tokens_in` includes `cached_tokens`.

    `first_token_s` and `latency_s` are seconds since the request was sent (waiting for a free slot not counted).
    `prompt_token_ids` is what the server read, where it says so. `estimated`: the server gave no usage, so tokens were
    counted from characters. `wasted_*` is what tries that failed had cost before this one, on top of the others.
    """

    choices: tuple[Choice, ...]
    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    latency_s: float = 0.0
    first_token_s: float | None = None
    model: str = ""
    endpoint: str = ""
    request_id: str = ""
    prompt_token_ids: tuple[int, ...] = ()
    estimated: bool = False
    wasted_tokens: int = 0
    wasted_cost: float = 0.0


OnChunk = Callable[[str], None]
"""Receives new text of the first answer while it is written; "" says that the answer starts afresh (a retry).

Called from the event loop; must not block."""


class Model(Protocol):
    """Anything that can be asked. Implementations raise `errors.ModelError` only, never a library's exception."""

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        """Ask once. Retries, if any, happen inside; a raised error is final for this request."""
        ...


Ask = Callable[[str], Awaitable[str]]


def ask_with(model: Model, temperature: float | None = 0.0, max_tokens: int | None = None) -> Ask:
    """`model` as a plain function from a prompt to the text of one answer."""

    async def ask(prompt: str) -> str:
        request = Request((Message("user", prompt),), temperature=temperature, max_tokens=max_tokens)
        return (await model.complete(request)).choices[0].text

    return ask
