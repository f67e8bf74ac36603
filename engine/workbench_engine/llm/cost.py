"""What an answer costs, and how many tokens a text has when nobody says."""

from __future__ import annotations

from workbench_engine.llm.settings import Price

CHARACTERS_A_TOKEN = 3.0
"""Code has fewer characters a token than prose (about 3 against 4): an estimate must not be too low."""


def cost_of(price: Price | None, tokens_in: int, tokens_out: int, cached_tokens: int = 0) -> float | None:
    """Money for one request; `tokens_in` includes `cached_tokens`. None for a model without a price."""
    if price is None:
        return None
    cached = min(cached_tokens, tokens_in)
    cached_price = price.input if price.cached is None else price.cached
    return ((tokens_in - cached) * price.input + cached * cached_price + tokens_out * price.output) / 1e6


def estimated_tokens(characters: int) -> int:
    """Tokens of so many characters, rounded up."""
    return -(-characters // int(CHARACTERS_A_TOKEN))
