"""Groups whose last member was judged go to the policy, one at a time."""

from __future__ import annotations

from collections import deque

from workbench_engine.conducting import groups as grouping
from workbench_engine.conducting.archive import Archive
from workbench_engine.conducting.groups import Group
from workbench_engine.conducting.ledger import Ledger
from workbench_engine.conducting.policy_thread import PolicyThread
from workbench_engine.conducting.recorder import Recorder
from workbench_engine.conducting.rewarding import taught
from workbench_engine.conducting.signals import Changed
from workbench_engine.settings import RunSettings


class Learner:
    """Gives finished groups to the policy and records what it made of them."""

    def __init__(
        self,
        recorder: Recorder,
        settings: RunSettings,
        policy: PolicyThread,
        archive: Archive,
        ledger: Ledger,
        changed: Changed,
    ) -> None:
        self._recorder = recorder
        self._settings = settings
        self._policy = policy
        self._archive = archive
        self._ledger = ledger
        self._changed = changed
        self._complete: deque[Group] = deque()
        self._learning: int | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be learned from."""
        return not self._complete

    def may_still_learn(self, group: int | None) -> bool:
        """Whether the rewards of a group can yet change what is learned."""
        return self._ledger.is_open(group) and group != self._learning

    def collect(self) -> None:
        """To be called whenever a group may have come to its end."""
        queued = {g.number for g in self._complete}
        self._complete.extend(g for g in self._ledger.complete() if g.number not in queued)
        self._changed.notify()

    async def run(self) -> None:
        """Learns for ever."""
        while True:
            await self._changed.until(lambda: bool(self._complete))
            group = self._complete[0]
            self._learning = group.number
            p = self._recorder.projection
            told = grouping.outcomes(group, p.candidates, p.details)
            told = taught(self._settings.reward, told, p.candidates.values())
            update, state = await self._policy.learn(group.context, told)
            event = self._ledger.learned(group, told, update, state)
            self._recorder.record([event, *self._archive.group_done()])
            self._complete.popleft()
            self._learning = None
            self._changed.notify()
