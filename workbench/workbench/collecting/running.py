"""The collection itself: one task open at a time, all models asked at once, one candidate judged at a time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from workbench.collecting.asking import Asker, asker_of, seed_of
from workbench.collecting.attempts import Attempt, Goal, same_code, wants_more
from workbench.collecting.journal import Journal
from workbench.collecting.remembering import Answering
from workbench.errors import EnvironmentProblem, UsageProblem
from workbench.judging import Judge, Judged, TaskText
from workbench_engine.llm.contract import Completion
from workbench_engine.llm.errors import CapReached, ContextTooLong, ModelError
from workbench_engine.llm.recording import NotRecorded
from workbench_engine.llm.settings import LlmSettings
from workbench_engine.policies.llm.prompting import text_of
from workbench_engine.tasks.catalogue import space_for
from workbench_sessions.events import FindingRaised

Say = Callable[[Attempt], None]
Note = Callable[[str], None]


class Manner(Struct, frozen=True):
    """How is asked and judged: the same for a whole collection."""

    llm: LlmSettings
    seed: int = 0
    profile: str = "search"
    case: str = ""


class Collector:
    """Collects examples of several tasks with several models, by the names these go by."""

    def __init__(
        self,
        journal: Journal,
        models: Mapping[str, Answering],
        manner: Manner,
        goal: Goal,
        *,
        machine: dict[str, str],
        say: Say,
        note: Note,
    ) -> None:
        self._journal = journal
        self._models = models
        self._manner = manner
        self._goal = goal
        self._machine = machine
        self._say = say
        self._note = note
        self._away: set[str] = set()
        self.unasked: set[str] = set()
        """Models that could not be asked to the end."""
        self.refused: set[str] = set()
        """Tasks that cannot be used."""

    async def collect(self, task: TaskText, open_judge: Callable[[TaskText], Judge]) -> None:
        """One task, unless every model has its successes or tries. Raises CapReached, CommandFailed."""
        name = task_name(task.path)
        left = [m for m in self._models if m not in self._away and self._more(name, m)]
        if not left:
            return
        space = space_for(task.path)
        if self._manner.llm.answers == "points" and space is None:
            self._refuse(name, f"{name}: has no design space to ask points of")
            return
        async with AsyncExitStack() as opened:
            try:
                judge = await opened.enter_async_context(open_judge(task))
            except UsageProblem as problem:
                # A task that is refused hinders no other.
                self._refuse(name, str(problem))
                return
            asker = asker_of(judge.task, self._manner.case, space, self._manner.llm)
            prompt = text_of(asker.messages)
            self._journal.agree_on(name, task.source, sha256(prompt))
            lock = asyncio.Lock()
            blank = Attempt(
                task=name,
                model="",
                number=0,
                seed=0,
                prompt=prompt,
                prompt_sha256=sha256(prompt),
                reference=task.source,
                kind=asker.kind,
                profile=self._manner.profile,
                case=self._manner.case,
                machine=self._machine,
            )

            async def keep(one: Attempt) -> Attempt:
                async with lock:
                    one = await self._judged(one, lambda c: judge.judge(c, asker.kind, self._manner.profile))
                    self._journal.add(one)
                    return one

            results = await asyncio.gather(
                *(self._pair(replace(blank, model=m), asker, keep) for m in left), return_exceptions=True
            )
        failed = [r for r in results if isinstance(r, BaseException)]
        if failed:
            # A cap is the least that can have happened.
            raise min(failed, key=lambda e: isinstance(e, CapReached))

    def _refuse(self, task: str, why: str) -> None:
        self.refused.add(task)
        self._note(why)

    def _more(self, task: str, model: str) -> bool:
        return wants_more(self._journal.of(task, model), self._goal)

    async def _pair(self, blank: Attempt, asker: Asker, keep: Callable[[Attempt], Awaitable[Attempt]]) -> None:
        """Asks one model until it has its successes or tries, or can't be asked any more."""
        task, model = blank.task, blank.model
        while self._more(task, model):
            number = len(self._journal.of(task, model)) + 1
            seed = seed_of(self._manner.seed, task, model, number)
            try:
                done = await self._models[model].complete(asker.request(seed))
            except CapReached:
                raise
            except NotRecorded:
                self._note(f"{model}: {task}: the recording ends after {number - 1} answers")
                return
            except ModelError as error:
                self.unasked.add(model)
                if not isinstance(error, ContextTooLong):
                    # Else another task may fit.
                    self._away.add(model)
                self._note(f"{model}: {task}: {error}")
                return
            except OSError as error:
                why = error.strerror or error
                raise EnvironmentProblem(f"{self._journal.folder}: cannot be written ({why})") from error
            self._say(await keep(answered(replace(blank, number=number, seed=seed), asker, done)))

    async def _judged(self, one: Attempt, judge: Callable[[str], Awaitable[Judged]]) -> Attempt:
        """With a verdict, if there is anything to judge; what was judged before is not judged again."""
        if not one.code:
            return one
        before = same_code(self._journal.attempts, one.task, one.code)
        return refereed(one, await judge(one.code)) if before is None else repeated(one, before)


def answered(one: Attempt, asker: Asker, done: Completion) -> Attempt:
    """The attempt with what the model said."""
    choice = done.choices[0]
    code, problem = asker.read(choice)
    return replace(
        one,
        answer=choice.text,
        code=code,
        problem=problem,
        finish=choice.finish,
        tokens_in=done.tokens_in,
        tokens_out=done.tokens_out,
        cost=done.cost,
        endpoint=done.endpoint,
    )


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


_FOUND = (
    *("verdict", "reason", "speedup", "lower", "upper", "pairs", "reference_s", "candidate_s", "referee_seed"),
    *("sandbox", "findings", "machine"),
)


def repeated(one: Attempt, before: Attempt) -> Attempt:
    """The attempt with the verdict on the same code. Pure."""
    found = {name: getattr(before, name) for name in _FOUND}
    return replace(one, repeats=f"{before.model}/{before.number}", **found)


def task_name(path: Path) -> str:
    """What a task is called in the data set: its file, or its folder where the file is `reference.py`."""
    return path.stem if path.stem != "reference" else path.parent.name


def sha256(text: str) -> str:
    """The name of a prompt."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
