"""The course of a run: running, paused by a person, waiting for its policy, ending. Only here does a phase change."""

from __future__ import annotations

import asyncio

from workbench_engine.conducting.clock import RunClock
from workbench_engine.conducting.desk import Refused
from workbench_engine.conducting.outage import Outage
from workbench_engine.conducting.recorder import Recorder
from workbench_engine.conducting.signals import Changed
from workbench_sessions import events as ev


class Course:
    """Phases, the running clock, and the alarm for the budget in seconds."""

    def __init__(self, recorder: Recorder, clock: RunClock, changed: Changed, patience_s: float | None) -> None:
        """`patience_s`: how long the policy may be away; None is for ever."""
        self._recorder = recorder
        self._clock = clock
        self._changed = changed
        self._timer: asyncio.TimerHandle | None = None
        self.outage = Outage(self._away, patience_s)
        self.paused = False
        self.outcome = ""
        self.reason = ""
        self.stopped = asyncio.Event()

    @property
    def active(self) -> bool:
        """Whether candidates may be proposed as far as people and the budget go."""
        return not self.outcome and not self.paused

    def begin(self, reason: str) -> None:
        self._phase("running", reason)
        self._clock.start()
        self.arm()

    def end(self, outcome: str, reason: str = "") -> None:
        """No more candidates; those in flight are finished and the best is confirmed."""
        if self.outcome:
            return
        self.outcome, self.reason = outcome, reason
        self._phase("stopping", reason or outcome)
        self._changed.notify()

    def stop(self, reason: str) -> None:
        """Ends the run now: what is in flight is given up, and judged when the session is resumed. Raises Refused."""
        if self.stopped.is_set():
            raise Refused("the run is stopping already")
        self.outcome, self.reason = self.outcome or "stopped", reason or self.reason
        self.stopped.set()
        self._changed.notify()
        self._phase("stopping", reason)

    def pause(self) -> None:
        """Raises Refused."""
        if self.paused or self.outcome:
            raise Refused("the run is ending" if self.outcome else "the run is paused already")
        self.paused = True
        self._clock.stop()
        self._recorder.record([ev.PhaseChanged(phase="paused"), self.spent()])

    def resume(self) -> None:
        """Raises Refused. While the policy is away this has it tried at once."""
        if self.outage.on and not self.paused:
            self._phase("paused", f"trying again at once: {self.outage.reason}")
            self.outage.try_now()
            return
        if not self.paused:
            raise Refused("the run is not paused")
        self.paused = False
        if self.outage.on:
            self._phase("paused", self.outage.reason)
            self.outage.try_now()
            return
        self._clock.start()
        self._phase("running")

    def arm(self) -> None:
        """Sets the alarm for the budget in seconds."""
        self.disarm()
        cap = self._recorder.projection.header.budget.seconds
        if cap is None or not self.active or self.outage.on:
            return
        left = cap - self._clock.spent_s
        if left <= 0:
            self.end("budget", f"{cap:g} s are spent")
        else:
            self._timer = asyncio.get_running_loop().call_later(left, self.arm)

    def spent(self) -> ev.BudgetSpent:
        """What is spent by now."""
        p = self._recorder.projection
        return ev.BudgetSpent(
            evaluations=p.evaluations, seconds=self._clock.spent_s, tokens=p.spent_tokens, money=p.spent_money
        )

    def close(self) -> None:
        """Nothing rings any more, and no more time is spent."""
        self.disarm()
        self._clock.stop()

    def disarm(self) -> None:
        """The alarm does not ring any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _phase(self, phase: ev.Phase, reason: str = "") -> None:
        self._recorder.record([ev.PhaseChanged(phase=phase, reason=reason)])

    def _away(self, reason: str) -> None:
        """While the policy is away no time is spent; what was proposed before is still judged."""
        if self.outcome or self.paused:
            return
        if reason:
            self._clock.stop()
            self._recorder.record([ev.PhaseChanged(phase="paused", reason=reason), self.spent()])
        else:
            self._clock.start()
            self._phase("running", "the policy can be asked again")
        self.arm()
        self._changed.notify()
