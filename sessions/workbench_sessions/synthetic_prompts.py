"""The made-up session as if a language model had written its candidates: prompts, streams, answers, failures.

The same for the same arguments; nothing of it was ever sent to or said by a model, and the session says so.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from workbench_sessions import events as ev
from workbench_sessions.synthetic import Beat, sha256, timeline, write_beats

MODEL = "made-up-coder-30b"
REASONER = "made-up-thinker"
PRICE_IN, PRICE_OUT = 0.4e-6, 1.6e-6
"""Money a token."""

PIECE_S = 0.25
CHARACTERS_PER_S = 700.0
FAILURES = (
    ("failed", "made-up-coder-30b: HTTP 429, asked 5 times: too many requests"),
    ("refusal", "the model refused: I cannot help with that."),
    ("length", "the answer was cut off inside its code block; raise llm.max_tokens"),
    ("stop", "no SEARCH text of change 2 is in the file; nearest is line 14: `for (long j = 0; j < C; j += 64) {`"),
)
STEERING = (
    (9.0, ev.SteeringGiven(text="Prefer one pass over the rows; the reference is bound by memory.")),
    (31.0, ev.SteeringGiven(text="Keep the tail loop separate from the vectorised body.")),
)


def asked(candidates: int = 80, seed: int = 0) -> Iterator[Beat]:
    """The whole session, event by event, in the order of time."""
    return _Conversation(list(timeline(candidates, seed)), seed).tell()


def write_asked(path: Path | str, candidates: int = 80, seed: int = 0) -> Path:
    """A session file of `asked`. Raises `SessionExists`."""
    return write_beats(path, asked(candidates, seed))


class _Conversation:
    def __init__(self, beats: list[Beat], seed: int) -> None:
        self.beats = beats
        self.random = random.Random(seed + 1)
        self.begun_s = next(b.at_s for b in beats if isinstance(b.event, ev.PhaseChanged))
        self.judged = [
            (b.at_s, b.event.candidate, b.event.speedup)
            for b in beats
            if isinstance(b.event, ev.VerdictReached) and b.event.speedup and not b.event.confirmed
        ]
        self.sources = {
            b.event.candidate: b.sources[0] for b in beats if isinstance(b.event, ev.CandidateProposed) and b.sources
        }
        self.number = 0
        self.out: list[Beat] = []
        self.spent: list[tuple[float, int, float]] = []

    def tell(self) -> Iterator[Beat]:
        for beat in self.beats:
            self._take(beat)
        for after_s, event in STEERING:
            self.out.append(Beat(at_s=self.begun_s + after_s, event=event))
        # Sorting keeps the order of what happens at one time.
        self.out.sort(key=lambda beat: beat.at_s)
        self._number()
        self.spent.sort()
        last_s = self.beats[-1].at_s
        tokens, money, at = 0, 0.0, 0
        for beat in self.out:
            if beat.at_s > last_s:
                continue
            while at < len(self.spent) and self.spent[at][0] <= beat.at_s:
                tokens, money, at = tokens + self.spent[at][1], money + self.spent[at][2], at + 1
            if isinstance(beat.event, ev.BudgetSpent):
                told = replace(beat.event, tokens=tokens, money=round(money, 9))
                beat = Beat(at_s=beat.at_s, event=told)
            yield beat

    def _number(self) -> None:
        """Names the prompts in the order they were sent."""
        sent = [b.event.prompt for b in self.out if isinstance(b.event, ev.PromptSent)]
        name = {old: f"p{i:05d}" for i, old in enumerate(sent, start=1)}
        for i, beat in enumerate(self.out):
            event = beat.event
            if isinstance(event, ev.PromptSent):
                event = replace(event, prompt=name[event.prompt], repairs=name.get(event.repairs, ""))
            elif isinstance(event, (ev.ResponseStreamed, ev.ResponseReceived)):
                event = replace(event, prompt=name[event.prompt])
            elif isinstance(event, ev.CandidateProposed) and event.origin.prompt:
                event = replace(event, origin=replace(event.origin, prompt=name[event.origin.prompt]))
            self.out[i] = Beat(at_s=beat.at_s, event=event, sources=beat.sources)

    def _take(self, beat: Beat) -> None:
        event = beat.event
        if isinstance(event, ev.SessionOpened):
            settings = {**event.settings, "models": f"{MODEL}, {REASONER}", "kind": "kernel"}
            budget = replace(event.budget, tokens=2_000_000, money=0.25)
            named = replace(event, policy="llm", name=f"{event.name}-prompts", settings=settings, budget=budget)
            self.out.append(Beat(at_s=beat.at_s, event=named, sources=beat.sources))
        elif isinstance(event, ev.PolicyUpdated):
            still = replace(event, loss=None, entropy=None, kl=None, grad_norm=None, advantages=[], version=0)
            self.out.append(Beat(at_s=beat.at_s, event=replace(still, skipped="this policy does not learn")))
        elif isinstance(event, ev.CandidateProposed) and event.origin.policy != "person":
            self._ask_for(beat, event)
        else:
            self.out.append(beat)

    def _ask_for(self, beat: Beat, event: ev.CandidateProposed) -> None:
        """A prompt some seconds before the candidate, its answer, and now and then one that came to nothing."""
        model = REASONER if self.random.random() < 0.3 else MODEL
        source = self.sources.get(event.candidate, "")
        failed = FAILURES[self.number % len(FAILURES)] if self.random.random() < 0.12 else None
        repairs = ""
        if failed is not None:
            before_s = self.random.uniform(14.0, 18.0)
            repairs = self._prompt(beat.at_s - before_s, event, model, source, failed)
        name = self._prompt(beat.at_s, event, model, source, None, repairs)
        patch = "repair" if repairs else self._patch(event)
        origin = ev.Origin(policy="llm", model=model, patch=patch, prompt=name, answer=0)
        told = replace(event, origin=origin, point=None, exemplars=self._exemplars(beat.at_s - 12.0))
        self.out.append(Beat(at_s=beat.at_s, event=told, sources=beat.sources))

    def _patch(self, event: ev.CandidateProposed) -> str:
        return ("full", "full", "diff", "cross")[sum(map(ord, event.candidate)) % 4]

    def _exemplars(self, at_s: float) -> list[ev.Exemplar]:
        known = [(name, speed) for when, name, speed in self.judged if when < at_s][-40:]
        if len(known) < 2:
            return []
        chosen = sorted(random.Random(len(known)).sample(known, 2), key=lambda one: one[1])
        return [
            ev.Exemplar(candidate=name, score=speed, role=role)
            for (name, speed), role in zip(chosen, ("slow", "fast"), strict=True)
        ]

    def _prompt(
        self,
        end_s: float,
        event: ev.CandidateProposed,
        model: str,
        source: str,
        failed: tuple[str, str] | None,
        repairs: str = "",
    ) -> str:
        self.number += 1
        name = f"p{self.number:05d}"
        exemplars = self._exemplars(end_s - 12.0)
        text = self._prompt_text(event, exemplars)
        analysis, design = _analysis(exemplars), f"A {event.note}. One row stays in cache while it is read twice."
        answer = f"## Performance analysis\n\n{analysis}\n\n## Algorithm design\n\n{design}\n\n## Code\n\n"
        answer += f"```cpp\n{source}```\n"
        if failed is not None and failed[0] in ("refusal", "failed"):
            answer = "I cannot help with that." if failed[0] == "refusal" else answer[:300]
        elif failed is not None and failed[0] == "length":
            answer = answer[: len(answer) * 2 // 3]
        reasoning = ""
        if model == REASONER and failed is None:
            reasoning = "".join(f"Step {i}: what if the {_WORDS[i % len(_WORDS)]} were the limit?\n" for i in range(40))
        seconds = max(2.0, len(answer) / CHARACTERS_PER_S) + self.random.uniform(0.5, 2.0)
        sent_s = max(self.begun_s + 0.001 * self.number, end_s - seconds - 0.02)
        first_s = min(sent_s + self.random.uniform(0.4, 1.2), end_s - 0.05)
        sent = ev.PromptSent(
            prompt=name,
            model=model,
            text_sha256=sha256(text),
            endpoint=model,
            patch="repair" if repairs else self._patch(event),
            group=event.group,
            parents=event.parents,
            exemplars=exemplars,
            repairs=repairs,
        )
        self.out.append(Beat(at_s=sent_s, event=sent, sources=[text]))
        if first_s > sent_s:
            self._stream(name, answer, first_s, end_s - 0.03)
        got = ev.ResponseReceived(
            prompt=name,
            model=model,
            text_sha256=sha256(answer),
            tokens_in=len(text) // 3,
            tokens_out=(len(answer) + len(reasoning)) // 3,
            cost=len(text) // 3 * PRICE_IN + (len(answer) + len(reasoning)) // 3 * PRICE_OUT,
            seconds=round(max(0.1, end_s - 0.02 - sent_s), 3),
            endpoint=model,
            finish="stop",
            cached_tokens=len(text) // 6,
            first_token_s=round(max(0.0, first_s - sent_s), 3),
            reasoning_sha256=sha256(reasoning) if reasoning else "",
            analysis=analysis,
            design=design,
        )
        texts = [answer, reasoning] if reasoning else [answer]
        if failed is not None:
            got = replace(got, finish=failed[0], problem=failed[1], analysis="", design="")
        if failed is not None and failed[0] == "failed":
            got = replace(got, text_sha256="", tokens_in=None, tokens_out=None, cost=None, seconds=None)
            got, texts = replace(got, first_token_s=None, wasted_tokens=120, wasted_cost=5e-5), []
        self.out.append(Beat(at_s=max(sent_s, end_s - 0.02), event=got, sources=texts))
        tokens = (got.tokens_in or 0) + (got.tokens_out or 0) + got.wasted_tokens
        self.spent.append((self.out[-1].at_s, tokens, (got.cost or 0.0) + got.wasted_cost))
        return name

    def _stream(self, name: str, answer: str, first_s: float, end_s: float) -> None:
        count = max(1, int((end_s - first_s) / PIECE_S))
        size = max(1, -(-len(answer) // count))
        for i in range(0, len(answer), size):
            at_s = first_s + i / size * PIECE_S
            piece = ev.ResponseStreamed(prompt=name, text=answer[i : i + size])
            self.out.append(Beat(at_s=min(at_s, end_s), event=piece))

    def _prompt_text(self, event: ev.CandidateProposed, exemplars: list[ev.Exemplar]) -> str:
        parts = [
            "[system]\nYou make kernels fast. Answer in three sections: performance analysis, algorithm design, code.",
            "[user]\n# Task: Row softmax\n\nfloat32, rows = 4096, columns = 1024. The machine has 2 cores.",
        ]
        for i, one in enumerate(exemplars):
            shown = self.sources.get(one.candidate, "")
            parts.append(f"## Implementation {chr(65 + i)}: speedup {one.score:.2f}\n\n```cpp\n{shown}```")
        parts.append(f"# Answer\n\nWrite a faster kernel than implementation {chr(64 + max(1, len(exemplars)))}.")
        return "\n\n".join(parts) + "\n"


_WORDS = ("exponential", "memory traffic", "reduction", "tail loop", "vector width")


def _analysis(exemplars: list[ev.Exemplar]) -> str:
    if len(exemplars) < 2:
        return "The reference reads each row three times and calls libm once an element."
    slow, fast = exemplars
    return (
        f"Implementation B ({fast.score:.2f}) is {fast.score / slow.score:.2f} times as fast as A ({slow.score:.2f}): "
        "it keeps a tile in registers and replaces the exponential by a polynomial, so that the loop is no longer "
        "bound by calls but by the loads."
    )
