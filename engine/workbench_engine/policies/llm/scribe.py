"""Tells the log what was asked and answered. Pieces of an answer are told a few times a second, not one by one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from workbench_engine.llm.contract import Completion, Message
from workbench_engine.llm.errors import ModelError
from workbench_engine.policies.contract import Say
from workbench_engine.policies.llm.answers import Answer
from workbench_engine.policies.llm.planning import Plan
from workbench_engine.policies.llm.prompting import text_of
from workbench_sessions import events as ev

PIECES_S = 0.25
"""A lone answer grows so often on a screen."""

SHARED_S = 0.02
"""Every open answer slows all of them down by so much: 64 give 50 events a second."""


def sha256_of(text: str) -> str:
    """The name a text is stored under."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class Scribe:
    """Numbers prompts and writes their events. Used from one event loop."""

    def __init__(self, say: Say, prompts: int = 0, now: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._prompts = prompts
        self._now = now
        self._open = 0

    def sent(
        self,
        messages: Sequence[Message],
        plan: Plan,
        *,
        model: str,
        endpoint: str,
        group: int,
        n: int,
        repairs: str = "",
    ) -> Hearing:
        """A prompt goes out; what comes of it is told through the result."""
        self._prompts += 1
        name = f"p{self._prompts:05d}"
        text = text_of(messages)
        sha256 = sha256_of(text)
        shown = plan.shown
        event = ev.PromptSent(
            prompt=name,
            model=model,
            text_sha256=sha256,
            endpoint=endpoint,
            patch=plan.patch,
            group=group,
            parents=list(plan.parents),
            exemplars=[
                ev.Exemplar(candidate=s.candidate, score=s.speedup or 0.0, role=role(i, len(shown)))
                for i, s in enumerate(shown)
            ],
            repairs=repairs,
            answers=n,
        )
        self._say(event, {sha256: text})
        self._open += 1
        return Hearing(self, name, model, endpoint)

    def _tell(self, event: ev.Event, texts: Mapping[str, str]) -> None:
        self._say(event, texts)

    def _closed(self) -> None:
        self._open -= 1

    @property
    def _interval_s(self) -> float:
        return max(PIECES_S, SHARED_S * self._open)


class Hearing:
    """One prompt that waits for its answers."""

    def __init__(self, scribe: Scribe, name: str, model: str, endpoint: str) -> None:
        self.name = name
        self._scribe = scribe
        self._model = model
        self._endpoint = endpoint
        self._pieces: list[str] = []
        self._restart = False
        self._told_s = scribe._now()
        self._over = False

    def chunk(self, text: str) -> None:
        """More of the first answer; "" says that it starts afresh."""
        if not text:
            self._pieces, self._restart = [], True
            return
        self._pieces.append(text)
        if self._scribe._now() - self._told_s >= self._scribe._interval_s:
            self._flush()

    def answered(self, done: Completion, answers: Sequence[Answer]) -> None:
        """All answers are there and read."""
        self._flush()
        self._end()
        for i, (choice, answer) in enumerate(zip(done.choices, answers, strict=True)):
            first = i == 0
            text, thought = choice.text, choice.reasoning
            texts = {sha256_of(text): text}
            if thought:
                texts[sha256_of(thought)] = thought
            tokens = ""
            if choice.token_ids or choice.logprobs:
                tokens = msgspec.json.encode({"ids": choice.token_ids, "logprobs": choice.logprobs}).decode()
                texts[sha256_of(tokens)] = tokens
            event = ev.ResponseReceived(
                prompt=self.name,
                model=done.model or self._model,
                text_sha256=sha256_of(text),
                tokens_in=done.tokens_in if first else 0,
                tokens_out=done.tokens_out if first else 0,
                cost=done.cost if first or done.cost is None else 0.0,
                seconds=done.latency_s if first else 0.0,
                answer=i,
                endpoint=done.endpoint or self._endpoint,
                finish=choice.finish,
                cached_tokens=done.cached_tokens if first else 0,
                first_token_s=done.first_token_s if first else None,
                estimated=done.estimated,
                reasoning_sha256=sha256_of(thought) if thought else "",
                analysis=answer.sections.analysis,
                design=answer.sections.design,
                problem=answer.problem,
                wasted_tokens=done.wasted_tokens if first else 0,
                wasted_cost=done.wasted_cost if first else 0.0,
                tokens_sha256=sha256_of(tokens) if tokens else "",
            )
            self._scribe._tell(event, texts)

    def failed(self, error: ModelError) -> None:
        """No answer came."""
        self._flush()
        self._end()
        event = ev.ResponseReceived(
            prompt=self.name,
            model=self._model,
            text_sha256="",
            endpoint=self._endpoint,
            finish="failed",
            problem=str(error),
            wasted_tokens=error.wasted_tokens,
            wasted_cost=error.wasted_cost,
        )
        self._scribe._tell(event, {})

    def given_up(self) -> None:
        """Nobody waits for the answer any more (the run ends)."""
        self._end()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._scribe._closed()

    def _flush(self) -> None:
        self._told_s = self._scribe._now()
        if self._pieces:
            event = ev.ResponseStreamed(prompt=self.name, text="".join(self._pieces), restart=self._restart)
            self._pieces, self._restart = [], False
            self._scribe._tell(event, {})


def role(index: int, count: int) -> str:
    """ "fast" for the fastest of the exemplars, "slow" for the others."""
    return "fast" if index == count - 1 else "slow"
