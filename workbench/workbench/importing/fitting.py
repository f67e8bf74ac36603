"""A large task cut to the size of a CPU: which numbers, in which order, how far. Pure but for the oracle it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from workbench.importing.sizes import Size, sizes, with_sizes
from workbench_engine.tasks.cost import Estimate

MIB = 1 << 20
PHASES: tuple[tuple[tuple[str, int], ...], ...] = (
    (("batch", 8), ("extent", 16)),
    (("feature", 32),),
    (("batch", 2), ("extent", 8)),
    (("feature", 16),),
)
"""Roles that are cut in turn, each not below its floor: what the model is made of comes after what goes through it."""


class Target(Struct, frozen=True):
    """What a task may cost to be worth a run on a CPU. Bytes, and products as `Estimate` counts them."""

    tensors: int = 64 * MIB
    peak: int = 256 * MIB
    traffic: int = 1024 * MIB
    flops: int = 4_000_000_000

    def met(self, found: Estimate) -> bool:
        return (
            found.tensors <= self.tensors
            and found.peak <= self.peak
            and found.traffic <= self.traffic
            and found.flops <= self.flops
        )

    def excess(self, found: Estimate) -> float:
        """How far beyond the target, over all its costs; falls whenever one of them that is too large falls."""
        ratios = (
            found.tensors / self.tensors,
            found.peak / self.peak,
            found.traffic / self.traffic,
            found.flops / self.flops,
        )
        return sum(max(ratio - 1.0, 0.0) for ratio in ratios)


class Fitted(Struct, frozen=True):
    """`values` by label; empty when nothing was cut. `found` is the cost with them."""

    values: dict[str, int]
    found: Estimate


Oracle = Callable[[str], Estimate | None]
"""The complete estimate of a source, None where it does not run (the sizes no longer fit each other)."""


def fit(source: str, found: Estimate, target: Target, oracle: Oracle) -> Fitted:
    """Halves sizes, the largest first, until `target` is met or nothing more can be cut.

    A cut that the model does not survive, or that saves nothing, is taken back and its size left alone.
    """
    known = sizes(source)
    values = {size.label: size.value for size in known}
    cut: set[str] = set()
    for phase in PHASES:
        floors = dict(phase)
        stuck: set[str] = set()
        while not target.met(found):
            label = _next(known, values, floors, stuck)
            if label is None:
                break
            tried = {**values, label: max(values[label] // 2, 1)}
            result = oracle(with_sizes(source, known, {k: tried[k] for k in {*cut, label}}))
            if result is None or target.excess(result) >= target.excess(found) * 0.999:
                stuck.add(label)
                continue
            values, found = tried, result
            cut.add(label)
    return Fitted({label: values[label] for label in sorted(cut)}, found)


def _next(known: list[Size], values: Mapping[str, int], floors: Mapping[str, int], stuck: set[str]) -> str | None:
    """The largest size of these roles that may still be halved."""
    open_to = [
        s.label for s in known if s.role in floors and s.label not in stuck and values[s.label] // 2 >= floors[s.role]
    ]
    return max(open_to, key=lambda label: values[label], default=None)
