"""Which models may be asked, and how. Keys are never here: only the name of the variable that holds one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

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


Contrast = Literal["bucket", "island", "random"]


class PatchWeights(Struct, frozen=True, forbid_unknown_fields=True):
    """How often a candidate is asked for as a whole file, as changes to one, as a cross of two (any positive sum)."""

    full: float = 0.7
    diff: float = 0.2
    cross: float = 0.1

    def __post_init__(self) -> None:
        weights = (self.full, self.diff, self.cross)
        if any(not w >= 0.0 for w in weights) or not sum(weights) > 0.0:
            raise ValueError("llm.patches must hold weights of 0 or more, one of them above 0: full, diff, cross")


class LlmSettings(Struct, frozen=True, kw_only=True):
    """How models are asked in a run: the section `[llm]` of the configuration. 0 = no cap where it says so.

    One endpoint is described by `base_url`, `model` and what follows; several by tables `[llm.endpoints.NAME]`, which
    have their own. `n` answers are asked for with one prompt, `concurrency` prompts are open at once. `temperature`
    0.8 is that for frozen weights; a trained group samples at 1.0.

    `exemplars` (1 to 4) and `contrast` say which earlier candidates a prompt shows: "bucket" as CUDA-L1 published,
    "island" and "random" for ablations. `patches` weighs how a candidate is asked for: as a whole file, as changes to
    one, as a cross of two. `templates` is a folder whose files replace those of the same name.

    `money`, `tokens`, `requests` are hard caps of the whole session (0 = none). `patience_minutes` is how long the run
    waits for an endpoint that is gone (0 = for ever). `prices` are by model.

    `answers` "points" asks for a choice in the task's design space, in a form that the server enforces, instead of
    code. `logprobs` keeps the sampled tokens and their log-probabilities. `replay` is a session or a file of recorded
    answers that are used instead of a model, found by the request's content, by its seed alone, or ("turn") by its
    content and else by its seed (`replay_match`).
    """

    base_url: str = ""
    model: str = ""
    key_env: str = "OPENAI_API_KEY"
    temperature: float | None = 0.8
    top_p: float | None = None
    max_tokens: int = 8192
    context: int = 0
    n: int = 1
    concurrency: int = 4
    stream: bool = True
    seed: bool = True
    retries: int = 4
    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0
    connect_s: float = 10.0
    first_token_s: float = 180.0
    stall_s: float = 60.0
    total_s: float = 900.0
    extra: dict[str, Any] = {}
    kind: Literal["kernel", "module"] = "kernel"
    exemplars: int = 2
    contrast: Contrast = "bucket"
    patches: PatchWeights = PatchWeights()
    failures: int = 2
    repair: bool = True
    templates: str = ""
    money: float = 0.0
    tokens: int = 0
    requests: int = 0
    patience_minutes: float = 60.0
    prices: dict[str, Price] = {}
    endpoints: dict[str, Endpoint] = {}
    answers: Literal["code", "points"] = "code"
    logprobs: bool = False
    replay: str = ""
    replay_match: Literal["content", "seed", "turn"] = "turn"

    def __post_init__(self) -> None:
        if not 1 <= self.exemplars <= 4:
            raise ValueError(f"llm.exemplars = {self.exemplars} must be 1 to 4")
        for name in ("n", "concurrency", "max_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"llm.{name} = {getattr(self, name)} must be at least 1")
        for name in ("context", "retries", "failures", "money", "tokens", "requests", "patience_minutes"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"llm.{name} = {getattr(self, name)} must be 0 or more")


def endpoints_of(settings: LlmSettings) -> tuple[Endpoint, ...]:
    """The endpoints of a run, each with its price. Raises ValueError, in one line, when none can be made."""
    if settings.endpoints:
        named = [replace(e, name=e.name or name) for name, e in settings.endpoints.items()]
        return tuple(e if e.price is not None else replace(e, price=settings.prices.get(e.model)) for e in named)
    if not settings.base_url:
        raise ValueError("no model server is named; give --base-url http://HOST/v1, or set llm.base_url")
    shared = {f: getattr(settings, f) for f in Endpoint.__struct_fields__ if hasattr(settings, f)}
    return (Endpoint(**shared, price=settings.prices.get(settings.model)),)
