"""What one opened prompt needs of the session: its texts, read when they are first shown, never more than one prompt's.

The texts of a prompt do not change; the answer that is being written does, and is read on from where it was.
"""

from __future__ import annotations

from workbench_screens import asking
from workbench_screens.desk import Desk
from workbench_screens.document import Material
from workbench_screens.lines import Line
from workbench_screens.rows import Prose
from workbench_sessions.errors import SessionError
from workbench_sessions.events import ResponseReceived
from workbench_sessions.projection import Candidate, Request

COLOURED_CHARACTERS = 200_000
"""Longer files stay plain: a lexer would hold up the screen for seconds, even from its thread."""


class Reading:
    """The material of the opened prompt. Use from the screen's thread."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.loads = 0
        """How often a text was read: tests count these."""
        self._of: tuple[object, ...] = ()
        self._texts: dict[str, str] = {}
        self._answers: tuple[ResponseReceived, ...] = ()
        self._answers_of: tuple[object, ...] = ()
        self._stream: Prose | None = None
        self._read_seq = 0
        self._restarts = 0
        self._missing = ""

    def material(self, request: Request, answer: int, width: int) -> Material:
        """Everything of a prompt at the position; `answer` is held within those that are there."""
        desk = self.desk
        of = (desk.sessions, request.prompt, request.text_sha256)
        if of != self._of:
            self._of = of
            self._texts, self._answers_of, self._stream = {}, (), None
        self._missing = ""
        one = asking.asked(desk.projection, request)
        prompt = self._text(request.text_sha256)
        if request.state in asking.OPEN or (request.state == "lost" and request.streamed):
            rows = self._streamed(request, width)
            return Material(one=one, prompt=prompt, streamed=rows, missing=self._missing)
        self._stream = None
        answers_of = (len(request.replies),)
        if answers_of != self._answers_of:
            self._answers = tuple(sorted(desk.feed.answers(request.prompt), key=lambda told: told.answer))
            self._answers_of = answers_of
        if not self._answers:
            return Material(one=one, prompt=prompt, missing=self._missing)
        answer = min(max(0, answer), len(self._answers) - 1)
        told = self._answers[answer]
        made = made_of(one.candidates, told.answer)
        source = self._text(made.source_sha256) if made is not None else ""
        return Material(
            one=one,
            prompt=prompt,
            answers=self._answers,
            answer=answer,
            text=self._text(told.text_sha256),
            reasoning=self._text(told.reasoning_sha256),
            source=source,
            code=tuple(desk.coloured(made.source_sha256) or ()) if made is not None else (),
            missing=self._missing,
        )

    def source_to_colour(self, request: Request, answer: int) -> tuple[str, str] | None:
        """(hash, text) of the code that is shown and not highlighted yet."""
        one = asking.asked(self.desk.projection, request)
        number = self._answers[answer].answer if answer < len(self._answers) else answer
        made = made_of(one.candidates, number)
        if made is None or self.desk.coloured(made.source_sha256) is not None:
            return None
        text = self._texts.get(made.source_sha256, "")
        return (made.source_sha256, text) if 0 < len(text) <= COLOURED_CHARACTERS else None

    def _text(self, sha: str) -> str:
        if not sha:
            return ""
        found = self._texts.get(sha)
        if found is None:
            self.loads += 1
            try:
                found = self.desk.feed.source(sha)
            except (SessionError, KeyError) as error:
                self._missing = f"a text is not in the session: {error}"
                return ""
            self._texts[sha] = found
        return found

    def _streamed(self, request: Request, width: int) -> list[Line]:
        """Rows of the answer so far; only what came since the last look is read, unless one looks further back."""
        seq = self.desk.feed.position_seq
        stream = self._stream
        if stream is None or stream.width != width or seq < self._read_seq or request.restarts != self._restarts:
            stream = self._stream = Prose(width)
            self._read_seq = 0
        if request.changed_seq > self._read_seq:
            pieces = self.desk.feed.streamed(request.prompt, self._read_seq)
            begin = max((i for i, piece in enumerate(pieces) if piece.restart), default=0)
            for piece in pieces[begin:]:
                stream.add(piece.text)
        self._read_seq, self._restarts = seq, request.restarts
        return stream.rows


def made_of(candidates: tuple[Candidate, ...], answer: int) -> Candidate | None:
    """The candidate that came of an answer."""
    return next((c for c in candidates if (c.origin.answer or 0) == answer), None)
