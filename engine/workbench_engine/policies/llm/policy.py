"""The policy `llm`: a frozen model that is shown what was tried and how fast it was, and writes the next candidate.

This is CUDA-L1's contrastive loop without its weight updates. Several prompts are open at once; each answer is read,
given one turn to mend what cannot be read, and judged. A candidate that does not build is given back once with what
the compiler said.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from workbench_engine.llm.bandit import RoutingModel
from workbench_engine.llm.contract import Choice, Completion, Message, Request
from workbench_engine.llm.errors import (
    CapReached,
    ContextTooLong,
    ModelError,
    ModelRefusedRequest,
    ModelUnavailable,
    NoAnswer,
)
from workbench_engine.llm.making import ClosingModel, Preparing, make_model
from workbench_engine.llm.meter import Caps, Meter, Spent
from workbench_engine.llm.recording import RECORDED, RecordingModel, keep_with, replay_of
from workbench_engine.llm.settings import LlmSettings, endpoints_of
from workbench_engine.policies.contract import (
    Brief,
    Context,
    NothingUsable,
    Outcome,
    PolicyFailed,
    PolicySpent,
    PolicyUnavailable,
    Proposal,
    Scored,
    Update,
)
from workbench_engine.policies.llm.answers import Answer, read_answer
from workbench_engine.policies.llm.hardware import hardware_facts, read_caches
from workbench_engine.policies.llm.planning import Plan, plan
from workbench_engine.policies.llm.prompting import Prompts, TemplateProblem
from workbench_engine.policies.llm.scribe import Hearing, Scribe
from workbench_sessions.events import Budget, Origin, WarningRaised

REPAIRS_KEPT = 16
"""So many broken candidates wait to be mended at most; the oldest are given up first."""

PENDING_KEPT = 256

ModelMaker = Callable[[Brief, Meter], ClosingModel]
"""Makes the model of a run. Raises ValueError or ModelError, in one line, when it cannot."""


def configured(brief: Brief, meter: Meter) -> ClosingModel:
    """The endpoints of the section `[llm]`."""
    return make_model(brief.llm, meter, seed=brief.seed)


class _Sample(Struct, frozen=True):
    """A proposal until its group is learned from. `repaired`: it was mended already and gets no second turn.

    `endpoint` wrote it for `cost`; `base` is the ln speedup it had to surpass: its parent's, or the reference's 0.
    """

    text: str
    parents: tuple[str, ...]
    repaired: bool
    endpoint: str = ""
    cost: float | None = None
    base: float = 0.0


class _Repair(Struct, frozen=True):
    """A candidate that did not build."""

    candidate: str
    sample: _Sample
    stage: str
    feedback: str


class _State(Struct, frozen=True, tag="llm/1"):
    samples: int
    pending: dict[int, _Sample]
    repairs: list[_Repair]
    seen_broken: list[str] = []
    router: bytes = b""


class Run(Struct, frozen=True):
    """What `brief` made."""

    brief: Brief
    prompts: Prompts
    scribe: Scribe
    meter: Meter
    model: ClosingModel
    label: str
    model_name: str
    router: RoutingModel | None = None
    preparing: Preparing | None = None


class LlmPolicy:
    """See the module. Used from one event loop; `propose` may be called again before it has returned."""

    def __init__(self, name: str = "llm", make: ModelMaker = configured, in_flight: int | None = None) -> None:
        """`in_flight` None leaves it to the settings."""
        self.name = name
        self.in_flight = in_flight or 1
        self.answers = 1
        self._fixed_in_flight = in_flight
        self._make = make
        self._run: Run | None = None
        self._samples = 0
        self._pending: dict[int, _Sample] = {}
        self._repairs: list[_Repair] = []
        self._seen_broken: dict[str, None] = {}

    def brief(self, brief: Brief) -> None:
        """See `Briefed`. Raises ValueError for settings, keys or templates that cannot be used."""
        settings = brief.llm
        spent = Spent(money=brief.spent_money, tokens=brief.spent_tokens, requests=brief.prompts)
        meter = Meter(_caps(settings, brief.budget), spent)
        cpuinfo = _read("/proc/cpuinfo")
        facts = hardware_facts(brief.host, cpuinfo, read_caches())
        prompts = Prompts(brief.task, brief.case, settings.kind, facts, settings.templates)
        try:
            inner = (
                replay_of(Path(settings.replay), settings.replay_match) if settings.replay else self._make(brief, meter)
            )
        except ModelError as error:
            raise ValueError(str(error)) from None
        self.in_flight = self._fixed_in_flight or settings.concurrency
        self.answers = settings.n
        label, model_name = self._names(settings)
        if settings.replay:
            label = RECORDED
            brief.say(WarningRaised(text=f"answers come from {Path(settings.replay).name}: no model is asked"), {})
        self._run = Run(
            brief,
            prompts,
            Scribe(brief.say, brief.prompts),
            meter,
            # A recording of a recording would look like a run of its own.
            inner if settings.replay else RecordingModel(inner, keep_with(brief.say)),
            label,
            model_name,
            inner if isinstance(inner, RoutingModel) else None,
            inner if isinstance(inner, Preparing) else None,
        )

    async def propose(self, context: Context, n: int) -> list[Proposal]:
        """Candidates of one prompt: at most `llm.n`, fewer when answers cannot be used."""
        run = self._briefed()
        settings = run.brief.llm
        if n < 1:
            return []
        self._caps(run, context)
        await self._prepared(run)
        if self._repairs:
            return await self._mend(run, context, self._repairs.pop(0))
        rng = random.Random(f"{run.brief.seed}:{context.group}:plan")
        planned = plan(context, settings.kind, settings.patches, rng)
        messages = self._rendered(lambda: run.prompts.messages(planned, context, settings.failures))
        return await self._ask(run, context, planned, messages, min(n, settings.n))

    async def learn(self, context: Context, outcomes: list[Outcome]) -> Update | None:
        """Nothing is learned; what did not build is queued for its one repair."""
        for outcome in outcomes:
            sample = self._pending.pop(outcome.sample, None) if outcome.sample is not None else None
            if sample is not None:
                self._credit(sample, outcome)
            if sample is None or sample.repaired or outcome.failed != "build" or not outcome.feedback:
                continue
            if outcome.candidate in self._seen_broken:
                # Proposed several times; the answer would be the same.
                continue
            self._seen_broken[outcome.candidate] = None
            while len(self._seen_broken) > PENDING_KEPT:
                del self._seen_broken[next(iter(self._seen_broken))]
            if self._run is not None and self._run.brief.llm.repair:
                self._repairs.append(_Repair(outcome.candidate, sample, outcome.failed, outcome.feedback))
        del self._repairs[:-REPAIRS_KEPT]
        return None

    def state(self) -> bytes:
        router = self._run.router.state() if self._run is not None and self._run.router is not None else b""
        return msgspec.msgpack.encode(
            _State(self._samples, self._pending, self._repairs, list(self._seen_broken), router)
        )

    def restore(self, state: bytes) -> None:
        try:
            saved = msgspec.msgpack.decode(state, type=_State)
        except msgspec.DecodeError as error:
            raise ValueError(f"state is not of policy {self.name!r}: {error}") from None
        self._samples, self._pending, self._repairs = saved.samples, dict(saved.pending), list(saved.repairs)
        self._seen_broken = dict.fromkeys(saved.seen_broken)
        if saved.router and self._run is not None and self._run.router is not None:
            self._run.router.restore(saved.router)

    async def aclose(self) -> None:
        if self._run is not None:
            await self._run.model.aclose()

    async def _mend(self, run: Run, context: Context, repair: _Repair) -> list[Proposal]:
        base = Scored(
            candidate=repair.candidate,
            text=repair.sample.text,
            point=None,
            speedup=None,
            verdict="FAILED",
            island=context.island,
            generation=0,
            feedback=repair.feedback,
            failed="build",
        )
        planned = Plan("repair", base=base)
        messages = self._rendered(lambda: run.prompts.messages(planned, context, 0))
        try:
            return await self._ask(run, context, planned, messages, 1)
        except (PolicyUnavailable, PolicySpent):
            self._repairs.insert(0, repair)
            raise

    async def _ask(
        self, run: Run, context: Context, planned: Plan, messages: tuple[Message, ...], n: int
    ) -> list[Proposal]:
        request = self._request(run, messages, n, _seed(run.brief.seed, context.group, 0))
        repairs = planned.base.candidate if planned.patch == "repair" and planned.base is not None else ""
        hearing, done = await self._complete(run, request, planned, context.group, repairs)
        answers = [self._answer(run, planned, c) for c in done.choices]
        hearing.answered(done, answers)
        proposals = []
        for i, (choice, answer) in enumerate(zip(done.choices, answers, strict=True)):
            name, number = hearing.name, i
            if not answer.code and answer.mendable and run.brief.llm.repair:
                name, number, answer = await self._once_more(
                    run, context, planned, request, choice, answer, hearing.name
                )
            if answer.code:
                proposals.append(self._proposal(planned, answer, done, name, number))
        if not proposals:
            raise NothingUsable(answers[0].problem if answers else "no answer came")
        return proposals

    async def _once_more(
        self,
        run: Run,
        context: Context,
        planned: Plan,
        request: Request,
        choice: Choice,
        answer: Answer,
        asked_in: str,
    ) -> tuple[str, int, Answer]:
        """The one turn to mend an answer that nothing could be made of: (prompt, answer's number, answer)."""
        messages = self._rendered(
            lambda: run.prompts.unreadable(request.messages, choice.text, answer.problem, planned.patch)
        )
        again = self._request(run, messages, 1, _seed(run.brief.seed, context.group, 1))
        hearing, done = await self._complete(run, again, planned, context.group, asked_in)
        answers = [self._answer(run, planned, c) for c in done.choices]
        hearing.answered(done, answers)
        mended = answers[0] if answers else answer
        if not mended.sections.design:
            mended = Answer(answer.sections, mended.code, mended.problem, mended.mendable)
        return hearing.name, 0, mended

    async def _complete(
        self, run: Run, request: Request, planned: Plan, group: int, repairs: str
    ) -> tuple[Hearing, Completion]:
        """Asks, and turns what a model can raise into what a policy may."""
        hearing = run.scribe.sent(
            request.messages,
            planned,
            model=run.model_name,
            endpoint=run.label,
            group=group,
            n=request.n,
            repairs=repairs,
        )
        try:
            return hearing, await run.model.complete(request, hearing.chunk)
        except ModelError as error:
            hearing.failed(error)
            raise _translated(error, planned) from error
        except asyncio.CancelledError:
            hearing.given_up()
            raise

    def _request(self, run: Run, messages: tuple[Message, ...], n: int, seed: int) -> Request:
        return Request(messages, n=n, seed=seed, logprobs=run.brief.llm.logprobs)

    def _answer(self, run: Run, planned: Plan, choice: Choice) -> Answer:
        """What is made of one answer."""
        parent = planned.base.text if planned.base is not None else ""
        return read_answer(choice, planned.patch, run.brief.llm.kind, parent)

    def _caps(self, run: Run, context: Context) -> None:
        """A person may have changed the budget."""
        run.meter.caps = _caps(run.brief.llm, context.budget)

    async def _prepared(self, run: Run) -> None:
        """Raises PolicyUnavailable while a server of ours starts: that time is not the search's."""
        if run.preparing is not None:
            try:
                await run.preparing.prepare()
            except ModelError as error:
                raise _translated(error, Plan("full")) from error

    def _credit(self, sample: _Sample, outcome: Outcome) -> None:
        """Tells the choice among endpoints what became of a candidate."""
        if self._run is None or self._run.router is None or not sample.endpoint:
            return
        won = outcome.correct and outcome.speedup is not None and outcome.speedup > 0.0
        gain = math.log(outcome.speedup or 1.0) - sample.base if won else 0.0
        self._run.router.credit(sample.endpoint, gain, sample.cost)

    def _proposal(self, planned: Plan, answer: Answer, done: Completion, prompt: str, number: int) -> Proposal:
        run = self._briefed()
        model = done.model
        self._samples += 1
        sample = self._samples
        before = [math.log(s.speedup) for s in planned.shown if s.candidate in planned.parents and s.speedup]
        cost = done.cost / len(done.choices) if done.cost is not None else None
        self._pending[sample] = _Sample(
            answer.code, planned.parents, planned.patch == "repair", done.endpoint, cost, max(0.0, *before, 0.0)
        )
        while len(self._pending) > PENDING_KEPT:
            del self._pending[next(iter(self._pending))]
        origin = Origin(policy=self.name, model=model, patch=planned.patch, prompt=prompt, answer=number)
        return Proposal(
            run.brief.llm.kind, answer.code, origin, sample=sample, note=answer.note, parents=planned.parents
        )

    def _rendered(self, render: Callable[[], tuple[Message, ...]]) -> tuple[Message, ...]:
        try:
            return render()
        except TemplateProblem as error:
            raise PolicyFailed(str(error), "correct the file in llm.templates, then resume the session") from error

    def _briefed(self) -> Run:
        if self._run is None:
            raise PolicyFailed(f"policy {self.name} was not told about the run", "report this")
        return self._run

    def _names(self, settings: LlmSettings) -> tuple[str, str]:
        """(endpoint, model) as a prompt's event names them before the answer tells who it was."""
        try:
            endpoints = endpoints_of(settings)
        except ValueError:
            return self.name, settings.model
        return ", ".join(e.label for e in endpoints), ", ".join(dict.fromkeys(e.model for e in endpoints))


def _translated(error: ModelError, planned: Plan) -> Exception:
    if isinstance(error, CapReached):
        return PolicySpent(str(error))
    if isinstance(error, ModelUnavailable):
        return PolicyUnavailable(str(error), error.retry_after_s)
    if isinstance(error, NoAnswer):
        return PolicyUnavailable(str(error))
    if isinstance(error, ContextTooLong) and planned.patch != "full":
        # Another prompt shows less.
        return NothingUsable(str(error))
    if isinstance(error, ModelRefusedRequest):
        return PolicyFailed(error.what, error.remedy)
    return PolicyUnavailable(str(error))


def _caps(settings: LlmSettings, budget: Budget) -> Caps:
    """The session's budget (it begins as that of the settings, a person may change it), and the cap on requests."""
    return Caps(money=budget.money, tokens=budget.tokens, requests=settings.requests or None)


def _seed(run_seed: int, group: int, turn: int) -> int:
    """A seed of its own for every request, within what servers take."""
    digest = hashlib.sha256(f"{run_seed}:{group}:{turn}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
