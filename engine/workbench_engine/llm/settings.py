"""Which models may be asked, and how. Keys are never here: only the name of the variable that holds one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from workbench_engine.llm.errors import BadCredentials

LOCAL_HOSTS = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0"))


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """Money per million tokens. `cached` is for prompt tokens that the server had already; None = as `input`."""

    input: float
    output: float
    cached: float | None = None


class Endpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model on one OpenAI-compatible server. Durations in seconds; 0 = no limit where it says so.

    `key_env` names the environment variable with the key (a server on this machine needs none). `context` is the
    model's context in tokens (0: unknown, found out from its errors). `requests_per_minute`, `tokens_per_minute`: 0 =
    no limit of ours. `first_token_s` bounds the wait for the first token, `stall_s` the silence between two,
    `total_s` the whole answer. `extra` goes into the body of every request as it is.
    """

    base_url: str
    model: str
    name: str = ""
    key_env: str = "OPENAI_API_KEY"
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int = 8192
    context: int = 0
    seed: bool = True
    stream: bool = True
    concurrency: int = 8
    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0
    retries: int = 4
    connect_s: float = 10.0
    first_token_s: float = 180.0
    stall_s: float = 60.0
    total_s: float = 900.0
    price: Price | None = None
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        label = self.name or self.model or "llm"
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"endpoint {label}: base_url {self.base_url!r} is no address; give one like http://HOST/v1"
            )
        if parts.username or parts.password:
            raise ValueError(f"endpoint {label}: base_url holds a password; put it into the variable of key_env")
        if not self.model:
            raise ValueError(f"endpoint {label}: no model is named; set model (or --model)")
        if self.concurrency < 1 or self.max_tokens < 1 or self.retries < 0:
            raise ValueError(f"endpoint {label}: concurrency and max_tokens must be at least 1, retries at least 0")
        for field in ("connect_s", "first_token_s", "stall_s", "total_s"):
            if not getattr(self, field) > 0.0:
                raise ValueError(f"endpoint {label}: {field} = {getattr(self, field)} must be more than 0")

    @property
    def label(self) -> str:
        """How people read it: its name, else the model."""
        return self.name or self.model

    @property
    def local(self) -> bool:
        """Whether the server is on this machine."""
        return urlsplit(self.base_url).hostname in LOCAL_HOSTS


def key_of(endpoint: Endpoint, environment: Mapping[str, str] = os.environ) -> str:
    """The key from the environment; "none" where a local server needs none. Raises BadCredentials."""
    key = environment.get(endpoint.key_env, "").strip() if endpoint.key_env else ""
    if key:
        return key
    if endpoint.local or not endpoint.key_env:
        return "none"
    raise BadCredentials(
        f"endpoint {endpoint.label}: the environment variable {endpoint.key_env} holds no key",
        f"export {endpoint.key_env}=…, or name another variable with llm.key_env",
    )
