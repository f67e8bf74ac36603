"""The policy `manual`: the prompts of `llm`, answered by a person through files.

Each prompt is written to `pNNNNN.md` in the session's prompts folder. The run waits until `pNNNNN.answer.md` (an
answer as a model would give it) or `pNNNNN.answer.cpp` / `.answer.py` (the file alone) is there, or until an answer is
given on a screen (`by_hand`), which is then kept as `pNNNNN.answer.md`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from workbench_engine.llm.contract import Choice, Completion, OnChunk, Request
from workbench_engine.llm.errors import ModelUnavailable
from workbench_engine.llm.meter import Meter
from workbench_engine.policies.contract import Brief, Say
from workbench_engine.policies.llm.by_hand import answer_path
from workbench_engine.policies.llm.policy import LlmPolicy
from workbench_engine.policies.llm.prompting import text_of
from workbench_engine.policies.llm.scribe import sha256_of
from workbench_sessions.events import WarningRaised

LOOK_S = 0.5
SUFFIXES = {".answer.md": "", ".answer.cpp": "cpp", ".answer.py": "python"}


class ManualModel:
    """`Model` whose answers a person writes. Prompts are numbered after what is in the folder already."""

    def __init__(self, folder: Path, say: Say, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._folder = folder
        self._say = say
        self._sleep = sleep

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        """Writes the prompt and waits for its answer. Raises ModelUnavailable when the folder cannot be used."""
        asked = text_of(request.messages)
        given = answer_path(self._folder, sha256_of(asked))
        try:
            # One that came too late for an earlier prompt with the same words is not meant for this one.
            given.unlink(missing_ok=True)
            prompt = self._write(asked)
        except OSError as error:
            what = f"the prompt cannot be written to {self._folder} ({error.strerror or error})"
            raise ModelUnavailable(what, "free or change the output folder") from error
        start_s = time.monotonic()
        self._say(
            WarningRaised(
                text=f"waiting for an answer to {prompt}",
                remedy=f"press A on the Transcript screen, or write it to {prompt.stem}.answer.md, "
                "or the code alone to .answer.cpp or .py",
            ),
            {},
        )
        while (text := self._answer(prompt, given)) is None:
            await self._sleep(LOOK_S)
        if on_chunk is not None:
            on_chunk(text)
        seconds = time.monotonic() - start_s
        return Completion(
            (Choice(text),), latency_s=seconds, model="a person", endpoint="manual", request_id=prompt.stem
        )

    async def aclose(self) -> None:
        """Nothing to close."""

    def _write(self, text: str) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        taken = [int(p.stem[1:6]) for p in self._folder.glob("p[0-9][0-9][0-9][0-9][0-9].md")]
        path = self._folder / f"p{max(taken, default=0) + 1:05d}.md"
        path.write_text(text, encoding="utf-8")
        return path

    def _answer(self, prompt: Path, given: Path) -> str | None:
        with suppress(OSError):
            given.replace(prompt.with_suffix(".answer.md"))
        for suffix, language in SUFFIXES.items():
            path = prompt.with_suffix(suffix)
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            if text.strip():
                return f"```{language}\n{text.rstrip()}\n```\n" if language else text
        return None


def _make(brief: Brief, meter: Meter) -> ManualModel:
    return ManualModel(brief.folder, brief.say)


def manual_policy() -> LlmPolicy:
    """A fresh one: one prompt at a time, its answers read and judged as a model's are."""
    return LlmPolicy("manual", _make, in_flight=1)
