"""How many groups to ask for at once: enough that nobody who evaluates idles, no more, so that prompts know the latest.

By Little's law a queue that is emptied at `slots / judging` candidates a second and filled after `asking` seconds needs
`slots · asking / judging` of them under way. Both times are moving averages (ShinkaEvolve's in-flight target is of the
same form, with a cap of twice the slots).
"""

from __future__ import annotations

import math

WEIGHT = 0.3
"""Of the newest sample in a moving average."""

SAMPLES = 3
"""Before so many of each are known, as many groups are asked for as there are slots."""


class Average:
    """An exponential moving average of seconds."""

    def __init__(self) -> None:
        self.count = 0
        self.mean_s = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.mean_s = seconds if self.count == 1 else WEIGHT * seconds + (1.0 - WEIGHT) * self.mean_s


class Ahead:
    """The target, from how long asking and judging take."""

    def __init__(self, slots: int) -> None:
        """`slots`: candidates that are evaluated at once."""
        self._slots = slots
        self.asking = Average()
        self.judging = Average()

    def target(self, most: int, group_size: int = 1) -> int:
        """Groups that should be under way, 1 to `most`; one more than needed, against the spread of the times."""
        if min(self.asking.count, self.judging.count) < SAMPLES:
            return max(1, min(most, math.ceil(self._slots / group_size)))
        needed = self._slots * self.asking.mean_s / max(self.judging.mean_s, 1e-6) / group_size
        return max(1, min(most, math.ceil(min(needed, float(most))) + 1))
