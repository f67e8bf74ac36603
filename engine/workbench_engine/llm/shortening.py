"""Prompts that do not fit are made to fit: what matters least goes first, and the model is told that something went.

A message marks the parts that may go with a pair of lines, the least important with the highest number:

    <!-- optional 2: earlier failures -->
    ...
    <!-- end -->

Marks are removed from every prompt before it is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from workbench_engine.llm.contract import Message

_PART = re.compile(r"<!-- optional (\d+): ([^\n]*?) -->\n(.*?)\n?<!-- end -->\n?", re.DOTALL)
GONE = "[left out to fit the context: {name}]\n"


def optional(level: int, name: str, text: str) -> str:
    """`text` marked as a part that may be left out."""
    return f"<!-- optional {level}: {name} -->\n{text}\n<!-- end -->\n"


def unmarked(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with every part kept and all marks removed."""
    return tuple(replace(m, content=_PART.sub(lambda p: p.group(3) + "\n", m.content)) for m in messages)


def characters(messages: Sequence[Message]) -> int:
    """Length of what would be sent."""
    return sum(len(m.content) for m in unmarked(messages))


def shortened(messages: Sequence[Message]) -> tuple[Message, ...] | None:
    """Without the optional part of the highest number (of equals the last); None when there is none left."""
    parts = [(int(p.group(1)), i, p.start(), p) for i, m in enumerate(messages) for p in _PART.finditer(m.content)]
    if not parts:
        return None
    _, index, _, part = max(parts, key=lambda found: found[:3])
    content = messages[index].content
    left = content[: part.start()] + GONE.format(name=part.group(2)) + content[part.end() :]
    return tuple(replace(m, content=left) if i == index else m for i, m in enumerate(messages))


LEAST_ANSWER = 256
MARGIN = 32
"""Tokens that a chat template adds around the messages."""


def fitted(
    messages: Sequence[Message], answer_tokens: int, context: int, tokens_of: Callable[[int], int]
) -> tuple[tuple[Message, ...], int] | None:
    """Messages (marks kept) and answer tokens that fit `context` tokens; None when even the shortest do not.

    Optional parts go before the answer is cut to less than a quarter. `context` 0 = unknown: nothing is changed.
    """
    left = tuple(messages)
    if context <= 0:
        return left, answer_tokens
    while True:
        room = context - MARGIN - tokens_of(characters(left))
        if room >= max(LEAST_ANSWER, answer_tokens // 4):
            return left, min(answer_tokens, room)
        shorter = shortened(left)
        if shorter is None:
            return (left, min(answer_tokens, room)) if room >= LEAST_ANSWER else None
        left = shorter
