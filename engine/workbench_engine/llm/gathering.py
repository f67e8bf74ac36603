"""An answer put together from its pieces: text, reasoning kept apart, how it ended, and a cap on its length.

Servers send reasoning in three ways: a field `reasoning_content`, a field `reasoning`, or inside the text between
`<think>` and `</think>` (some chat templates swallow the opening tag).
"""

from __future__ import annotations

from workbench_engine.llm.contract import Choice, Finish

OPEN, CLOSE = "<think>", "</think>"

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}


def finish_of(reason: str | None) -> Finish:
    """A server's finish reason as one of ours."""
    return _FINISH.get(reason or "", "other")


def split_thinking(text: str) -> tuple[str, str]:
    """(reasoning, answer) of a text that may hold `<think>` blocks. An unclosed block is all reasoning.

    A closing tag without an opening one ends reasoning that began with the text. Tags after the answer has begun are
    left alone: an answer may quote them.
    """
    stripped = text.lstrip()
    if stripped.startswith(OPEN):
        thought, closed, answer = stripped[len(OPEN) :].partition(CLOSE)
        return thought.strip(), answer.lstrip() if closed else ""
    if CLOSE in text and OPEN not in text:
        thought, _, answer = text.partition(CLOSE)
        # Three backticks before the tag: the answer itself has begun, and only quotes the tag.
        if "```" not in thought:
            return thought.strip(), answer.lstrip()
    return "", text


class Gathering:
    """One choice while it arrives. `limit` is the most characters, text and reasoning together, that are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._token_ids: list[int] = []
        self._logprobs: list[float] = []
        self.finish: Finish | None = None
        self.characters = 0

    @property
    def full(self) -> bool:
        """The cap is reached: what comes after is thrown away."""
        return self.characters >= self._limit

    def add(self, text: str = "", reasoning: str = "", refusal: str = "") -> None:
        """The next piece."""
        room = max(0, self._limit - self.characters)
        for piece, place in ((text, self._text), (reasoning, self._reasoning), (refusal, self._refusal)):
            if piece and room:
                place.append(piece[:room])
                self.characters += min(len(piece), room)
                room = max(0, self._limit - self.characters)

    def add_tokens(self, ids: list[int], logprobs: list[float]) -> None:
        self._token_ids.extend(ids)
        self._logprobs.extend(logprobs)

    def choice(self) -> Choice:
        """What has arrived so far. A cut one is `length`, one with a refusal and no text is `refusal`."""
        thought, text = split_thinking(_whole(self._text))
        reasoning = _whole(self._reasoning)
        refusal = _whole(self._refusal)
        finish: Finish = "length" if self.full else self.finish or "other"
        if refusal and not text:
            text, finish = refusal, "refusal"
        return Choice(
            text=text,
            reasoning=f"{reasoning}\n{thought}".strip() if thought else reasoning,
            finish=finish,
            token_ids=tuple(self._token_ids),
            logprobs=tuple(self._logprobs),
        )


def _whole(pieces: list[str]) -> str:
    """The text of the pieces, where half a character at the end of one and half at the start of the next are one.

    A half that stays alone is no text that anybody could store: it becomes U+FFFD.
    """
    text = "".join(pieces)
    if not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
