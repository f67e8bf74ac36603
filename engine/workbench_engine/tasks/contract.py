"""The task contract: what is optimised, over which shapes, to which tolerance, at what least cost.

A task file is KernelBench's (`Model`, `get_inputs`, `get_init_inputs`), with optional module-level names that say more:

    CASES      = {"cpu": {"rows": 1024, "cols": 2048}, "gpu": {...}}   # named dims of the timed shapes
    HIDDEN     = [{"rows": 7, "cols": 129}, ...]                       # shapes checked but never timed
    INPUTS     = {"target": {"domain": "index", "high": "classes"}}    # where plain reals would not do
    ACCUMULATE = "cols"                                                # dim whose length the sums run over
    def cost(rows, cols): return {"bytes": ..., "flops": ...}          # compulsory traffic and arithmetic
    MODE       = "eval" | "train" | "both"                             # how the model is meant to run
    PRECISION  = "fp32" | "tf32" | "bf16" | "fp16"                     # of the arithmetic, where lower than the dtype
    LOWER_PRECISION = "wrong" | "label"                                # what a lower class than declared is
    LIBRARY    = "label" | "forbid"                                    # may the work be left to a library?
    WEIGHTS    = "variable" | "constant"                               # may derived weights be kept between calls?

`get_inputs`, `get_init_inputs` and `cost` are called with those dims of the case that their signatures name; called
with no argument they must work too (KernelBench calls them so). The file itself is untrusted and runs only inside a
sandboxed reference worker, which describes it with the structs below.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Domain = Literal["real", "positive", "unit", "index", "bool", "fixed"]
"""real: any float; positive: > 0; unit: [0, 1]; index: integers in [0, high); fixed: keep get_inputs' values."""

DTYPES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
"""Bytes of one element, by torch's name of the dtype."""


class TensorSpec(Struct, frozen=True):
    """One tensor that crosses the boundary to a candidate. `shape` in elements, row-major contiguous."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: Literal["input", "state", "output"]
    domain: Domain = "real"
    high: int = 0

    @property
    def numel(self) -> int:
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def nbytes(self) -> int:
        return self.numel * DTYPES[self.dtype]


class ShapeCase(Struct, frozen=True):
    """One set of shapes. `dims` are the named dims in declared order (what a kernel receives as `dim`)."""

    name: str
    dims: dict[str, int]
    tensors: tuple[TensorSpec, ...]
    bytes_moved: int | None = None
    flops: int | None = None
    accumulate: int = 1
    """K: length of the longest accumulation, for the tolerance."""

    def of(self, role: str) -> tuple[TensorSpec, ...]:
        return tuple(t for t in self.tensors if t.role == role)


class Task(Struct, frozen=True):
    """A task as the engine knows it, described by the reference worker. `source` is the whole task file."""

    name: str
    title: str
    source: str
    path: str
    dtype: str
    cases: dict[str, ShapeCase]
    """Timed shapes by name; a plain KernelBench file has the single case "default"."""
    hidden: tuple[ShapeCase, ...] = ()
    stochastic: bool = False
    declared_precision: str = "fp32"
    mode: Literal["eval", "train", "both"] = "eval"
    lower_precision: Literal["wrong", "label"] = "wrong"
    library: Literal["label", "forbid"] = "label"
    weights: Literal["variable", "constant"] = "variable"
    world_size: int = 1


class TaskRejected(Exception):
    """A task file that cannot be used. `str()` is the one line for the person: what, where, what to do."""
