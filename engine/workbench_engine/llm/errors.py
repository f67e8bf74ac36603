"""What can go wrong when a model is asked. `str()` of each is one line: what, where, and what to do."""

from __future__ import annotations


class ModelError(Exception):
    """Base. `what` happened, `remedy` is what a person can do about it.

    `wasted_tokens`, `wasted_cost`: what the tries that failed had cost.
    """

    wasted_tokens = 0
    wasted_cost = 0.0

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(f"{what}; {remedy}" if remedy else what)
        self.what = what
        self.remedy = remedy


class ModelUnavailable(ModelError):
    """The endpoint cannot be reached or only fails: wait and ask again. `retry_after_s` when it said how long."""

    def __init__(self, what: str, remedy: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(what, remedy)
        self.retry_after_s = retry_after_s


class RateLimited(ModelUnavailable):
    """The endpoint asks for fewer requests (429), and went on asking through every retry."""


class ModelRefusedRequest(ModelError):
    """The request itself cannot be served (400, 404, 422): asking again would not help."""


class BadCredentials(ModelRefusedRequest):
    """The key is missing, wrong or not allowed to use the model (401, 403)."""


class ContextTooLong(ModelRefusedRequest):
    """Prompt and answer do not fit the model's context. `limit_tokens` when the server said so."""

    def __init__(self, what: str, remedy: str = "", limit_tokens: int | None = None) -> None:
        super().__init__(what, remedy)
        self.limit_tokens = limit_tokens


class NoAnswer(ModelError):
    """The endpoint answered, but with nothing usable: no choices, no text, a refusal or garbage."""


class CapReached(ModelError):
    """A hard cap on money, tokens, requests or time is reached: nothing more is asked. `cap` names it."""

    def __init__(self, cap: str, what: str, remedy: str = "") -> None:
        super().__init__(what, remedy)
        self.cap = cap
