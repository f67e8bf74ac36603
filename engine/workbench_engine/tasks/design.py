"""Design spaces: typed, compositional choices that render to a kernel.

A `DesignPoint` is one serializable value that any policy, model or person can emit; `render` turns it into one
C++ file for the `cpu` backend. Some points do not compile or are wrong, as in life: that is the referee's to find.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

Value = str | int | float | bool


class Dimension(Struct, frozen=True):
    """One choice. `group`: "algorithm", "fusion", "loops", "tiling", "vector", "math", "memory", "threads", "compiler".

    `ordered` says that neighbours in `values` are alike (tile sizes, unroll factors).
    """

    name: str
    group: str
    values: tuple[Value, ...]
    doc: str
    ordered: bool = False


class DesignPoint(Struct, frozen=True):
    """One choice in every dimension of the space of `task`."""

    task: str
    values: dict[str, Value]

    def key(self) -> str:
        """Stable short id of the point (order of the keys does not matter)."""
        canonical = msgspec.json.encode([self.task, sorted(self.values.items())], order="sorted")
        return hashlib.sha256(canonical).hexdigest()[:16]


class Kernel(Struct, frozen=True):
    """A rendered `kernel` candidate for the `cpu` backend: one C++ file and the compiler flags it asks for.

    The ABI, all a kernel ever sees (pointers row-major contiguous, 64-byte aligned):

        extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim);

    `in` holds the task's inputs in the order of `forward`, then the module's state (parameters and buffers in
    state_dict order); `out` the outputs; `dim` the named dims in declared order. Outputs arrive poisoned with NaN;
    inputs must not be written. Flags must be in `backends.cpu.ALLOWED_FLAGS`.
    """

    source: str
    flags: tuple[str, ...]

    def text(self) -> str:
        """The file form: flags ride in the first line, so that a candidate is one file a person can edit."""
        return f"// flags: {' '.join(self.flags)}\n{self.source}"


class DesignSpace:
    """The dimensions of one task and the function that renders a point."""

    def __init__(
        self,
        task: str,
        dimensions: tuple[Dimension, ...],
        render: Callable[[Mapping[str, Value]], Kernel],
        naive: Mapping[str, Value],
    ) -> None:
        self.task = task
        self.dimensions = dimensions
        self._render = render
        self.naive = self.point(naive)

    @property
    def size(self) -> int:
        """Number of points."""
        n = 1
        for dimension in self.dimensions:
            n *= len(dimension.values)
        return n

    def point(self, values: Mapping[str, Value]) -> DesignPoint:
        """A checked point. Raises ValueError naming the first dimension that is missing, unknown or out of range."""
        known = {d.name: d for d in self.dimensions}
        for name in values:
            if name not in known:
                raise ValueError(f"design point of {self.task}: unknown dimension {name!r}; known: {', '.join(known)}")
        chosen: dict[str, Value] = {}
        for name, dimension in known.items():
            if name not in values:
                raise ValueError(f"design point of {self.task}: dimension {name!r} is missing")
            if values[name] not in dimension.values:
                options = ", ".join(map(repr, dimension.values))
                raise ValueError(f"design point of {self.task}: {name} = {values[name]!r} is not one of {options}")
            chosen[name] = values[name]
        return DesignPoint(self.task, chosen)

    def render(self, point: DesignPoint) -> Kernel:
        """The kernel of a point; pure and deterministic."""
        return self._render(point.values)

    def encode(self, point: DesignPoint) -> tuple[int, ...]:
        """Index of the chosen value in each dimension, in declared order."""
        return tuple(d.values.index(point.values[d.name]) for d in self.dimensions)

    def decode(self, indices: tuple[int, ...]) -> DesignPoint:
        """Inverse of `encode`."""
        return DesignPoint(self.task, {d.name: d.values[i] for d, i in zip(self.dimensions, indices, strict=True)})

    def sample(self, rng: random.Random) -> DesignPoint:
        """A point uniform over the space."""
        return DesignPoint(self.task, {d.name: rng.choice(d.values) for d in self.dimensions})
