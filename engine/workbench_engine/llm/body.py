"""The body of a request to /chat/completions, and what of an answer's pieces is ours to read. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench_engine.llm.contract import Message, Request
from workbench_engine.llm.gathering import Gathering, finish_of
from workbench_engine.llm.settings import Endpoint


def body_of(
    request: Request, messages: Sequence[Message], answer_tokens: int, endpoint: Endpoint, stream: bool
) -> dict[str, Any]:
    """The JSON body. What neither the request nor the endpoint sets is left to the server."""
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [{"role": m.role, "content": m.content} for m in messages],
        "max_tokens": answer_tokens,
    }
    temperature = endpoint.temperature if request.temperature is None else request.temperature
    for name, value in (("temperature", temperature), ("top_p", endpoint.top_p), ("priority", request.priority)):
        if value is not None:
            body[name] = value
    if request.n > 1:
        body["n"] = request.n
    if request.seed is not None and endpoint.seed:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.logprobs:
        # Token ids too: re-tokenising a text does not give the tokens that were sampled.
        body |= {"logprobs": True, "return_token_ids": True}
    if request.structured is not None and request.structured.schema is not None:
        schema = {"name": request.structured.name, "schema": request.structured.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.structured is not None:
        body["structured_outputs"] = {"grammar": request.structured.grammar}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body | endpoint.extra


def take_choice(gathering: Gathering, choice: Any) -> str:
    """Adds one choice of a chunk or of a whole answer (as plain data); returns its new text."""
    if not isinstance(choice, Mapping):
        return ""
    part = choice.get("delta") or choice.get("message") or {}
    text = _text(part.get("content"))
    reasoning = _text(part.get("reasoning_content")) or _text(part.get("reasoning"))
    gathering.add(text, reasoning, _text(part.get("refusal")))
    tokens = (choice.get("logprobs") or {}).get("content") or []
    logprobs = [float(t["logprob"]) for t in tokens if isinstance(t, Mapping) and t.get("logprob") is not None]
    ids = [i for i in choice.get("token_ids") or [] if isinstance(i, int)]
    gathering.add_tokens(ids, logprobs)
    if choice.get("finish_reason"):
        gathering.finish = finish_of(str(choice["finish_reason"]))
    return text


def _text(value: Any) -> str:
    """Text, or the text parts of a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, Mapping))
    return ""


def usage_of(usage: Any) -> tuple[int, int, int] | None:
    """(tokens in, tokens out, cached tokens) of a usage object; None when it holds no numbers."""
    if not isinstance(usage, Mapping):
        return None
    tokens_in, tokens_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(tokens_in, int) or not isinstance(tokens_out, int):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return max(0, tokens_in), max(0, tokens_out), cached if isinstance(cached, int) else 0
