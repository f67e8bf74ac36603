"""What a failed try means: whether to ask again, how long to wait first, and what a person is told. One place for all.

Imports `openai`; only the client imports this.
"""

from __future__ import annotations

import json
from typing import Any

import openai
from msgspec import Struct

from workbench_engine.llm.adapting import context_limit, context_overflow
from workbench_engine.llm.backoff import retry_after_s
from workbench_engine.llm.errors import (
    BadCredentials,
    ContextTooLong,
    ModelError,
    ModelRefusedRequest,
    ModelUnavailable,
    NoAnswer,
    RateLimited,
)
from workbench_engine.llm.settings import Endpoint

TRANSIENT = frozenset((408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529))
SAID_KEPT = 300


class Failure(Struct, frozen=True):
    """`error` is what is raised when no try is left; `again` says whether another try may help at all."""

    error: ModelError
    again: bool
    hint_s: float | None = None
    limited: bool = False


class Broken(Exception):
    """An answer that arrived unusable: `str()` says how. Another try may do better."""


class CutOff(Exception):
    """A stream that ended in the middle of an answer."""


def failure_of(error: BaseException, endpoint: Endpoint, key: str = "") -> Failure:
    """The meaning of an exception of one try. `key` is blotted out of every text."""
    said = scrubbed(message_of(error), key)
    where = f"{endpoint.label} ({endpoint.base_url})"
    if isinstance(error, openai.APIStatusError):
        return _status(error, said, where, endpoint)
    if isinstance(error, openai.APIResponseValidationError | json.JSONDecodeError | UnicodeDecodeError | Broken):
        what = f"{where} sent no usable answer: {said}"
        return Failure(NoAnswer(what, "check that base_url is an OpenAI-compatible server"), again=True)
    if isinstance(error, CutOff):
        what = f"{where} broke off its answer: {said}"
        return Failure(ModelUnavailable(what, "see the server's log"), again=True)
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        what = f"{where} was silent for too long"
        return Failure(ModelUnavailable(what, "check the server, or raise the time limits of [llm]"), again=True)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        what = f"{where} cannot be reached: {scrubbed(message_of(cause), key)}"
        return Failure(ModelUnavailable(what, "start the server, or correct base_url"), again=True)
    if isinstance(error, openai.APIError):
        if context_overflow(said):
            return Failure(_too_long(where, said), again=False)
        return Failure(ModelUnavailable(f"{where} broke off its answer: {said}", "see the server's log"), again=True)
    what = f"{where} sent something unreadable: {type(error).__name__}: {said}"
    return Failure(NoAnswer(what, "check that base_url is an OpenAI-compatible server"), again=True)


def _status(error: openai.APIStatusError, said: str, where: str, endpoint: Endpoint) -> Failure:
    status = error.status_code
    hint_s = retry_after_s(dict(error.response.headers)) if status in (429, 503) else None
    if status == 429 and (error.code == "insufficient_quota" or "insufficient_quota" in said):
        remedy = "add credit, or use another endpoint"
        return Failure(ModelUnavailable(f"{where} says that the quota is used up: {said}", remedy, 300.0), again=False)
    if status == 429:
        remedy = "lower llm.concurrency, or set requests_per_minute"
        limited = RateLimited(f"{where} limits the rate (429): {said}", remedy, hint_s)
        return Failure(limited, again=True, hint_s=hint_s, limited=True)
    if status in TRANSIENT or status >= 500:
        down = ModelUnavailable(f"{where} answers with status {status}: {said}", "see the server's log", hint_s)
        return Failure(down, again=True, hint_s=hint_s)
    if status in (401, 403):
        remedy = f"check the key in ${endpoint.key_env}" if endpoint.key_env else "name the key's variable in key_env"
        return Failure(BadCredentials(f"{where} refuses the key ({status}): {said}", remedy), again=False)
    if status in (400, 413, 422) and (context_overflow(said) or status == 413):
        return Failure(_too_long(where, said), again=False)
    if status == 404:
        what = f"{where} knows no such model or address (404): {said}"
        return Failure(ModelRefusedRequest(what, f"check base_url and the model {endpoint.model!r}"), again=False)
    what = f"{where} rejects the request ({status}): {said}"
    return Failure(ModelRefusedRequest(what, "check the settings of [llm]"), again=False)


def _too_long(where: str, said: str) -> ContextTooLong:
    return ContextTooLong(
        f"{where}: prompt and answer do not fit the model's context: {said}",
        "use a model with a larger context, or lower llm.max_tokens",
        context_limit(said),
    )


def message_of(error: BaseException) -> str:
    """What an exception says, on one line, cut to what a person reads."""
    body: Any = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, dict) else None
    text = said if isinstance(said, str) and said else getattr(error, "message", None) or str(error)
    line = " ".join(str(text).split())
    return line[:SAID_KEPT] or type(error).__name__


def scrubbed(text: str, key: str) -> str:
    """`text` without the key."""
    return text.replace(key, "[key]") if len(key) > 5 else text
