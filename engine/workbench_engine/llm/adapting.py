"""Servers differ in what they accept. A rejected parameter is dropped or renamed once, and remembered for the endpoint.

Everything here is a pure function of the body of a request and the text of a 400 answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

OPTIONAL = (
    *("stream_options", "return_token_ids", "structured_outputs", "response_format", "logprobs", "priority"),
    *("temperature", "top_p", "seed", "stop"),
)
"""Parameters that an answer can do without, should a server not know them."""


class Quirks(Struct, frozen=True):
    """What is known of one server: parameters it does not take, and the name it has for the length of an answer."""

    dropped: frozenset[str] = frozenset()
    length_name: str = "max_tokens"
    single: bool = False
    """It gives one answer a request, whatever `n` says."""

    def applied(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body as this server wants it."""
        fitted = {k: v for k, v in body.items() if k not in self.dropped}
        if "max_tokens" in fitted and self.length_name != "max_tokens":
            fitted[self.length_name] = fitted.pop("max_tokens")
        return fitted


_ONE_ANSWER = re.compile(r"""['"`]n['"`]|\bn (?:is|must|should|can|>|=)""")


def learned(quirks: Quirks, body: Mapping[str, Any], said: str) -> Quirks | None:
    """What a 400 about `body` (as it was sent) teaches; None when it teaches nothing new."""
    text = said.lower()
    if "max_tokens" in body and "max_completion_tokens" in text:
        return replace(quirks, length_name="max_completion_tokens")
    if "max_completion_tokens" in body and "max_completion_tokens" in text:
        return replace(quirks, length_name="max_tokens")
    if body.get("n", 1) != 1 and _ONE_ANSWER.search(text):
        return replace(quirks, single=True)
    for name in OPTIONAL:
        if name in body and re.search(rf"\b{name}\b", text):
            return replace(quirks, dropped=quirks.dropped | {name})
    return None


_OVERFLOW = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|too many (?:input )?tokens|prompt is too long"
    r"|input is too long|reduce the length|exceeds? the (?:available )?context|max_model_len|context_length_exceeded"
)
_LIMIT = re.compile(
    r"(?:context (?:length|window|size)|max_model_len|maximum(?: of)?)[^0-9]{0,24}(\d{3,7})", re.IGNORECASE
)


def context_overflow(said: str) -> bool:
    """Whether a 400's text means that prompt and answer do not fit the model's context."""
    return _OVERFLOW.search(said.lower()) is not None


def context_limit(said: str) -> int | None:
    """The context in tokens that the text names, if it does."""
    found = _LIMIT.search(said)
    return int(found.group(1)) if found else None
