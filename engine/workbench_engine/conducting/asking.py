"""How a policy is asked: as many groups at once as keep the evaluators busy, through outages, until it has no more."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable

from msgspec.structs import replace

from workbench_engine.conducting.ahead import Ahead
from workbench_engine.conducting.archive import Archive
from workbench_engine.conducting.course import Course
from workbench_engine.conducting.failing import RunFailed
from workbench_engine.conducting.learning import Learner
from workbench_engine.conducting.ledger import Ledger
from workbench_engine.conducting.policy_thread import PolicyThread
from workbench_engine.conducting.recorder import Recorder
from workbench_engine.conducting.remarks import remarks
from workbench_engine.conducting.signals import Changed
from workbench_engine.policies.contract import (
    Context,
    NothingUsable,
    PolicyFailed,
    PolicySpent,
    PolicyUnavailable,
    Proposal,
)
from workbench_engine.settings import RunSettings

LOW_WATER = 1
"""A group is proposed when so few candidates wait: late enough to have learned, early enough that nobody idles."""

BARREN_GROUPS = 20
"""So many groups in a row without a single new candidate: the policy has nothing more to offer."""


class Asker:
    """Asks the policy for groups; what is new in them goes to `waiting`."""

    def __init__(
        self,
        recorder: Recorder,
        settings: RunSettings,
        policy: PolicyThread,
        archive: Archive,
        ledger: Ledger,
        learner: Learner,
        course: Course,
        changed: Changed,
        waiting: deque[str],
        idle: Callable[[], bool],
    ) -> None:
        """`waiting`: names of candidates that nobody has begun to judge. `idle`: nothing else is left to do."""
        self._recorder = recorder
        self._settings = settings
        self._policy = policy
        self._archive = archive
        self._ledger = ledger
        self._learner = learner
        self._course = course
        self._changed = changed
        self._waiting = waiting
        self._idle = idle
        self._asking: dict[int, int] = {}
        self._barren = 0
        self._exhausted = ""
        self._spent = False
        self.ahead = Ahead(settings.in_flight)

    async def run(self) -> None:
        """One group after another, until the end is called. A policy that waits (for a model) has several of these."""
        while True:
            await self._changed.until(self._wants_a_group)
            n = self._allowance()
            if n == 0 or self._exhausted:
                if self._idle() and not self._asking:
                    by_budget = self._spent or not self._exhausted
                    self._course.end("budget" if by_budget else "exhausted", self._why_no_more())
                    return
                await self._changed.wait()
                continue
            number = self._ledger.begin_group()
            self._asking[number] = n
            try:
                context = self._context(number)
                asked = await self._ask(context, n)
            finally:
                del self._asking[number]
                self._changed.notify()
            if asked is not None:
                self._admit(context, asked[0][:n], asked[1])
            self._learner.collect()

    def _admit(self, context: Context, proposals: list[Proposal], policy_state: bytes) -> None:
        new = self._ledger.admit(context, proposals, policy_state)
        self._waiting.extend(new)
        self._barren = 0 if new else self._barren + 1
        if not proposals:
            self._exhausted = f"policy {self._policy.name} has nothing more to propose"
        elif self._barren >= BARREN_GROUPS:
            self._exhausted = f"policy {self._policy.name} has proposed nothing new for {BARREN_GROUPS} groups"

    def _context(self, number: int) -> Context:
        p = self._recorder.projection
        said = remarks(p.candidates.values())
        rng = random.Random(f"{self._settings.seed}:{number}")
        context = self._archive.context(number, p.header.steering, rng, {r.candidate for r in said if r.accepted})
        return replace(context, remarks=said, budget=p.header.budget)

    async def _ask(self, context: Context, n: int) -> tuple[list[Proposal], bytes] | None:
        """Proposals, sooner or later; None when none can be made this time (or ever again, see `_exhausted`)."""
        outage = self._course.outage
        probing = False
        try:
            while True:
                start_s = time.monotonic()
                try:
                    asked = await self._policy.propose(context, n)
                except PolicyUnavailable as gone:
                    probing = await outage.wait(gone, probing)
                    continue
                outage.over()
                self.ahead.asking.add(time.monotonic() - start_s)
                return asked
        except NothingUsable as nothing:
            # The policy works, only this time nothing came of it.
            outage.over()
            self._barren += 1
            if self._barren >= BARREN_GROUPS:
                self._exhausted = f"{BARREN_GROUPS} prompts in a row gave nothing that can be tried: {nothing}"
        except PolicySpent as spent:
            self._exhausted, self._spent = str(spent), True
        except PolicyFailed as failed:
            raise RunFailed(str(failed), failed.remedy) from failed
        except PolicyUnavailable as gone:
            self._course.end("stopped", f"waited {self._settings.llm.patience_minutes:g} minutes: {gone}")
        finally:
            if probing:
                outage.given_up()
        return None

    def _allowance(self) -> int:
        """How many candidates may still be proposed, at most one group."""
        p = self._recorder.projection
        cap = p.header.budget.evaluations
        size = self._policy.group(self._settings.group_size)
        c = p.counts
        judged = c.faster + c.slower + c.same + c.ambiguous + c.wrong + c.failed + c.cheating
        pending = c.proposed - judged + sum(self._asking.values())
        return size if cap is None else max(0, min(size, cap - p.evaluations - pending))

    def _wants_a_group(self) -> bool:
        limit = self._settings.staleness
        fresh = limit is None or self._ledger.unlearned <= limit
        size = self._policy.group(self._settings.group_size)
        room = len(self._asking) < self.ahead.target(self._policy.in_flight, size)
        few = len(self._waiting) <= LOW_WATER and room
        return self._course.active and fresh and few and not self._course.outage.on

    def _why_no_more(self) -> str:
        return self._exhausted or f"{self._recorder.projection.evaluations} evaluations are spent"
