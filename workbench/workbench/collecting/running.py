"""The collection itself: one task open at a time, all models asked at once, one candidate judged at a time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from workbench.collecting.asking import Asker, asker_of, seed_of
from workbench.collecting.attempts import Attempt, Goal, wants_more
from workbench.collecting.journal import Journal
from workbench.judging import Judge, Judged, TaskText
from workbench_engine.llm.contract import Completion, OnChunk, Request
from workbench_engine.llm.errors import CapReached, ModelError
from workbench_engine.llm.recording import NotRecorded, RecordingModel, ReplayModel, TrafficFile, read_traffic
from workbench_engine.llm.settings import LlmSettings
from workbench_engine.policies.llm.prompting import text_of
from workbench_engine.tasks.catalogue import space_for
from workbench_sessions.events import FindingRaised


class Answering(Protocol):
    """A model that holds connections."""

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion: ...

    async def aclose(self) -> None: ...


Say = Callable[[Attempt], None]
Note = Callable[[str], None]


class Remembering:
    """`Model` that asks nothing twice: what an earlier, killed collection was answered is taken from its traffic."""

    def __init__(self, inner: Answering, traffic: Path) -> None:
        self._before = ReplayModel(read_traffic(traffic) if _holds_some(traffic) else [])
        self._model = RecordingModel(inner, TrafficFile(traffic).keep)

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion:
        """See `Model`."""
        try:
            return await self._before.complete(request)
        except NotRecorded:
            return await self._model.complete(request, on_chunk)


class Collector:
    """Collects examples of several tasks with several models, by the names these go by."""

    def __init__(
        self,
        journal: Journal,
        models: Mapping[str, Answering],
        llm: LlmSettings,
        goal: Goal,
        *,
        seed: int,
        profile: str,
        case: str,
        say: Say,
        note: Note,
    ) -> None:
        self._journal = journal
        traffic = journal.folder / "traffic"
        self._models = {name: Remembering(m, traffic / f"{_safe(name)}.jsonl") for name, m in models.items()}
        self._llm = llm
        self._goal = goal
        self._seed = seed
        self._profile = profile
        self._case = case
        self._say = say
        self._note = note
        self._away: set[str] = set()

    async def collect(self, task: TaskText, open_judge: Callable[[TaskText], Judge]) -> None:
        """One task, unless every model has its successes or tries. Raises CapReached, CommandFailed."""
        name = task.path.stem if task.path.stem != "reference" else task.path.parent.name
        left = [m for m in self._models if m not in self._away and self._more(name, m)]
        if not left:
            return
        async with open_judge(task) as judge:
            asker = asker_of(judge.task, self._case, space_for(task.path), self._llm)
            lock = asyncio.Lock()

            async def judged(code: str) -> Judged:
                async with lock:
                    return await judge.judge(code, asker.kind, self._profile)

            results = await asyncio.gather(
                *(self._pair(name, model, asker, task.source, judged) for model in left), return_exceptions=True
            )
        failed = [r for r in results if isinstance(r, BaseException)]
        # A model that is away hinders no other; a cap ends everything.
        for error in sorted(failed, key=lambda e: isinstance(e, ModelError) and not isinstance(e, CapReached)):
            if not isinstance(error, ModelError) or isinstance(error, CapReached):
                raise error

    @property
    def away(self) -> set[str]:
        """Models that could not be asked to the end."""
        return self._away

    def _more(self, task: str, model: str) -> bool:
        return wants_more(self._journal.of(task, model), self._goal)

    async def _pair(
        self, task: str, model: str, asker: Asker, reference: str, judged: Callable[[str], Awaitable[Judged]]
    ) -> None:
        """Asks one model until it has its successes or tries."""
        prompt = text_of(asker.messages)
        while self._more(task, model):
            number = len(self._journal.of(task, model)) + 1
            seed = seed_of(self._seed, task, model, number)
            try:
                done = await self._models[model].complete(asker.request(seed))
            except CapReached:
                raise
            except ModelError as error:
                self._away.add(model)
                self._note(f"{model}: {error}")
                raise
            choice = done.choices[0]
            code, problem = asker.read(choice)
            one = Attempt(
                task=task,
                model=model,
                number=number,
                seed=seed,
                prompt=prompt,
                prompt_sha256=hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest(),
                reference=reference,
                kind=asker.kind,
                answer=choice.text,
                code=code,
                problem=problem,
                profile=self._profile,
                case=self._case,
                finish=choice.finish,
                tokens_in=done.tokens_in,
                tokens_out=done.tokens_out,
                cost=done.cost,
                endpoint=done.endpoint,
            )
            if code:
                one = refereed(one, await judged(code))
            self._journal.add(one)
            self._say(one)


def refereed(one: Attempt, judged: Judged) -> Attempt:
    """The attempt with what the referee found. Pure."""
    v = judged.verdict
    found = [f"{e.severity} {e.code}: {e.text}" for e in judged.facts if isinstance(e, FindingRaised)]
    return replace(
        one,
        verdict=v.verdict,
        reason=v.reason,
        speedup=v.speedup,
        lower=v.lower,
        upper=v.upper,
        pairs=v.pairs,
        reference_s=v.reference_s,
        candidate_s=v.candidate_s,
        referee_seed=v.seed,
        sandbox=v.sandbox_level,
        findings=found,
    )


def _holds_some(path: Path) -> bool:
    return path.is_file() and b"\n" in path.read_bytes()


def _safe(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8] + "-" + "".join(c if c.isalnum() else "-" for c in name)[:40]


__all__: Sequence[str] = ("Collector", "Remembering", "refereed")
