"""What a run says about candidates besides their verdicts: badges from their source, the judge's warnings, and the
memory of those that were caught."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench_engine.conducting.evaluation import CORRECT
from workbench_engine.conducting.recorder import Recorder
from workbench_engine.llm.contract import ask_with
from workbench_engine.llm.meter import Caps, Meter
from workbench_engine.llm.settings import LlmSettings
from workbench_engine.referee.adversary.cases import Cases, CasesUnusable, case_of
from workbench_engine.referee.adversary.judge import (
    Library,
    Opinion,
    Suspect,
    opinion,
    warning_of,
    worth_asking,
)
from workbench_engine.referee.advice.advising import advise, as_findings
from workbench_engine.settings import RunSettings
from workbench_sessions import events as ev
from workbench_sessions.projection import Candidate, Details

if TYPE_CHECKING:
    from workbench_engine.llm.making import ClosingModel

log = logging.getLogger(__name__)

PATIENCE_S = 5.0
"""How long the end of a run waits for opinions that were asked for."""

MOST_HONEST = 30
"""So many correct candidates of this run, the newest, show what is common here and no sign of anything."""


MOST_QUESTIONS = 20
"""A run asks its judge's model at most so often."""

SHARE = 0.1
"""Of the caps on money and tokens of `[llm]`: what the judge may spend beside the policy."""


class Asking:
    """The judge's own model, made when it is first asked."""

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._model: ClosingModel | None = None

    def caps(self) -> Caps:
        """What the judge may spend; a cap of 0 in the settings is none."""
        money, tokens = self._settings.money * SHARE, int(self._settings.tokens * SHARE)
        return Caps(money=money or None, tokens=tokens or None, requests=MOST_QUESTIONS)

    async def __call__(self, prompt: str) -> str:
        """Raises ValueError or ModelError."""
        if self._model is None:
            # The client's library takes a second to import: only who asks pays.
            from workbench_engine.llm.making import make_model

            self._model = make_model(self._settings, Meter(self.caps()))
        return await ask_with(self._model)(prompt)

    async def aclose(self) -> None:
        if self._model is not None:
            await self._model.aclose()


def asking(settings: RunSettings) -> Asking | None:
    """The model that a run's judge asks; None where the run has none."""
    return Asking(settings.llm) if settings.judge else None


class Suspicion:
    """Advisory throughout: nothing here changes a verdict, and a failure costs a warning, never the run."""

    def __init__(self, recorder: Recorder, cases: str = "", ask: Asking | None = None) -> None:
        """`cases`: path of the database of past cheats; "" keeps and compares nothing. `ask`: a model, if any."""
        self._recorder = recorder
        self._cases = Cases(Path(cases)) if cases else None
        self._ask = ask
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: set[str] = set()
        self._complained = False

    def read(self, row: Candidate, text: str) -> None:
        """The badges of a candidate that is about to be judged for the first time."""
        details = self._recorder.projection.details.get(row.id, Details())
        if not any(finding.code == "advice" for finding in details.findings):
            self._recorder.record(as_findings(row.id, advise(text, row.kind)))

    def judged(self, name: str, text: str) -> None:
        """To be called when a verdict became a fact: a cheat is remembered, a reward jump looked at."""
        if self._cases is None:
            return
        p = self._recorder.projection
        row = p.candidates[name]
        if row.verdict == "CHEATING":
            self._remember(row, text)
        elif row.verdict == "FASTER" and name not in self._asked and not self._warned(name):
            others = [r for r in p.candidates.values() if r.id != name and r.verdict in CORRECT and r.speedup]
            best = max((r.speedup or 1.0 for r in others if r.verdict == "FASTER"), default=1.0)
            if worth_asking(row.speedup, best, [r.speedup or 1.0 for r in others]):
                newest = sorted(others, key=lambda r: -r.proposed_seq)[:MOST_HONEST]
                honest = [(self._recorder.source(r.source_sha256), r.kind) for r in newest]
                suspect = Suspect(
                    text=text,
                    kind=row.kind,
                    speedup=row.speedup or 1.0,
                    best_so_far=best,
                    task=p.header.task.name if p.header.task is not None else "",
                    profile=self._profile(name),
                )
                self._asked.add(name)
                task = asyncio.create_task(self._look(name, suspect, honest))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Waits a moment for what was asked, gives up the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=PATIENCE_S)
        for task in list(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
        if self._ask is not None:
            with suppress(Exception):
                await self._ask.aclose()

    def _warned(self, name: str) -> bool:
        details = self._recorder.projection.details.get(name, Details())
        return any(finding.code == "judge" for finding in details.findings)

    def _profile(self, name: str) -> str:
        """What the kernel coverage said, as far as it said anything."""
        details = self._recorder.projection.details.get(name, Details())
        return "; ".join(f.text for f in details.findings if f.code in ("library", "no-custom-kernel"))

    def _remember(self, row: Candidate, text: str) -> None:
        assert self._cases is not None
        p = self._recorder.projection
        findings = [
            ev.FindingRaised(row.id, f.code, f.severity, f.text, f.evidence)
            for f in p.details.get(row.id, Details()).findings
        ]
        try:
            self._cases.remember(case_of(text, row.kind, findings, f"session {p.header.name}, {row.id}"))
        except CasesUnusable as error:
            self._complain(str(error))

    async def _look(self, name: str, suspect: Suspect, honest: list[tuple[str, str]]) -> None:
        assert self._cases is not None
        try:
            cases = await asyncio.to_thread(self._cases.all)
            if not cases and self._ask is None:
                return
            library = await asyncio.to_thread(Library, cases, honest)
            alike = await asyncio.to_thread(library.alike, suspect.text, suspect.kind)
            good = await asyncio.to_thread(library.nearest_honest, suspect.text, suspect.kind)
            said: Opinion | None = None
            if self._ask is not None:
                try:
                    said = await opinion(suspect, alike, self._ask)
                except Exception as error:
                    # Whatever a model's client can raise: the likeness alone decides then.
                    self._complain(f"the judge's model gave no answer: {error}")
            warning = warning_of(name, alike, said, good)
            if warning is not None:
                self._recorder.emit(warning)
        except CasesUnusable as error:
            self._complain(str(error))

    def _complain(self, what: str) -> None:
        """Once a run: the same disk is full each time."""
        log.warning("%s", what)
        if not self._complained:
            self._complained = True
            self._recorder.emit(ev.WarningRaised(text=what, remedy="the run goes on without it"))
