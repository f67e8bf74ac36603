"""How long to wait before asking again."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from msgspec import Struct

LONGEST_HINT_S = 600.0


class Backoff(Struct, frozen=True):
    """Exponential with full jitter: uniform in [0, min(longest, first · factor^attempt)], never less than `least_s`.

    Source: "Exponential Backoff And Jitter", AWS architecture blog, 2015.
    """

    first_s: float = 1.0
    factor: float = 2.0
    longest_s: float = 60.0
    least_s: float = 0.05

    def delay_s(self, attempt: int, rng: random.Random, hint_s: float | None = None) -> float:
        """Seconds before retry number `attempt` (0 is the first); at least what the server asked for."""
        ceiling = min(self.longest_s, self.first_s * self.factor**attempt)
        drawn = max(self.least_s, rng.uniform(0.0, ceiling))
        # A little on top, so that everybody who was told the same instant does not come at the same instant.
        return drawn if hint_s is None else hint_s + rng.uniform(0.0, min(1.0, ceiling))


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a 429 or 503 asks to wait, from any of the usual headers; None when it says nothing usable.

    `retry-after-ms`, `retry-after` (seconds or a date, RFC 9110), `x-ratelimit-reset-*` ("1s", "6m0s", "120ms").
    """
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    found: float | None = _number(lower.get("retry-after-ms", ""), 1e-3)
    if found is None and "retry-after" in lower:
        found = _number(lower["retry-after"], 1.0)
        if found is None:
            found = _until(lower["retry-after"], now or datetime.now(UTC))
    if found is None:
        resets = [_duration(v) for k, v in lower.items() if k.startswith("x-ratelimit-reset")]
        known = [r for r in resets if r is not None]
        found = min(known) if known else None
    return None if found is None else min(max(0.0, found), LONGEST_HINT_S)


def _number(text: str, unit: float) -> float | None:
    try:
        value = float(text) * unit
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None


def _until(text: str, now: datetime) -> float | None:
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now.timestamp()


_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def _duration(text: str) -> float | None:
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+", text):
        return None
    return sum(float(n) * _UNITS[u] for n, u in re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text))
