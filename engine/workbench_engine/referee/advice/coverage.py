"""Whose code does the work: how much of a module's time is library compute, and whether its own kernel ran at all.

A kernel candidate is one compiled function that we call: its coverage is 1 by construction and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from workbench_sessions.events import FindingRaised

MOSTLY = 0.5
"""Share of the time in library compute from which a candidate is called a library call."""

BARELY = 0.01
"""Own code below this share of the time, beside a library that does the work, is a decoy."""

LIBRARIES = frozenset(("aten", "mkldnn", "mkl", "quantized", "onednn", "prepacked", "torch_sparse", "torchvision"))
_NOT_OWN = LIBRARIES | {"prim", "prims", "profiler", "c10d", "torch", "inductor", "autograd", "record_function"}
_COMPILED = ("Torch-Compiled Region", "CompiledFxGraph", "CompiledFunction", "TorchScript")

FREE = frozenset(
    """empty empty_like empty_strided empty_permuted new_empty new_empty_strided view _unsafe_view reshape
    _reshape_alias as_strided as_strided_ t transpose transpose_ permute movedim expand expand_as broadcast_to select
    slice narrow squeeze squeeze_ unsqueeze unsqueeze_ flatten unflatten detach detach_ alias resize_ resolve_conj
    resolve_neg unbind split split_with_sizes chunk diagonal numpy_T mT real set_ lift_fresh item _local_scalar_dense
    is_nonzero to _to_copy contiguous clone result_type can_cast size stride dim is_same_size""".split()  # noqa: SIM905
)
"""Operators of aten that allocate or look at memory in another way. The work of a copy is `copy_`, which counts."""


class Timed(Struct, frozen=True, array_like=True):
    """One function: its own seconds (callees excluded) over all calls."""

    name: str
    self_s: float
    calls: int


class Profile(Struct, frozen=True):
    """What `workers.profiling.profile` said of `repeats` calls that took `wall_s` seconds unprofiled."""

    wall_s: float
    ops: tuple[Timed, ...] = ()
    own: tuple[Timed, ...] = ()
    repeats: int = 1


class Label(Struct, frozen=True):
    """A badge: `code` is "library" or "no-custom-kernel"."""

    code: str
    text: str


class Coverage(Struct, frozen=True):
    """Shares of the time, 0..1. `rest` is what no profiler sees: the interpreter, and own code called by ctypes."""

    library: float
    own: float
    rest: float
    own_calls: int = 0
    labels: tuple[Label, ...] = ()


def read_profile(body: bytes | str) -> Profile:
    """The JSON of a worker. Raises ValueError (msgspec's) when it is none."""
    return msgspec.json.decode(body, type=Profile)


def coverage(profile: Profile, carries: str) -> Coverage:
    """`carries`: by what the source brings compiled code of its own (`advising.carries_compiled_code`), or "".

    Shares are of the unprofiled wall time, or of the sum of what was seen where that is more (the profiler costs).
    """
    library = [op for op in profile.ops if is_library(op.name)]
    dispatched = [op for op in profile.ops if is_own(op.name)]
    library_s = _seconds(library)
    # An operator registered with torch is entered by a compiled function too: the larger of the two is the time.
    own_s = max(_seconds(dispatched), _seconds(profile.own))
    own_calls = sum(op.calls for op in (*dispatched, *profile.own))
    whole = max(profile.wall_s, library_s + own_s)
    if whole <= 0.0:
        return Coverage(0.0, 0.0, 0.0, own_calls)
    shares = Coverage(library_s / whole, own_s / whole, max(0.0, 1.0 - (library_s + own_s) / whole), own_calls)
    labels: list[Label] = []
    if shares.library >= MOSTLY:
        labels.append(Label("library", f"{shares.library:.0%} of its time is spent in library calls: {_top(library)}"))
    if carries:
        idle = _idle(shares, carries)
        if idle:
            labels.append(Label("no-custom-kernel", idle))
    return msgspec.structs.replace(shares, labels=tuple(labels))


def as_findings(candidate: str, found: Coverage) -> list[FindingRaised]:
    """The labels as facts, with the shares they rest on."""
    shares: dict[str, str | int | float | bool] = {
        "library": round(found.library, 3),
        "own": round(found.own, 3),
        "rest": round(found.rest, 3),
    }
    return [FindingRaised(candidate, label.code, "label", label.text, shares) for label in found.labels]


def is_library(name: str) -> bool:
    """Whether an operator's time is library compute: not an allocation, not a view."""
    space, _, operator = name.partition("::")
    if not operator:
        return name.startswith(_COMPILED)
    return space in LIBRARIES and operator not in FREE


def is_own(name: str) -> bool:
    """Whether an operator is of a namespace that neither torch nor its companions use."""
    space, _, operator = name.partition("::")
    return bool(operator) and space.isidentifier() and space not in _NOT_OWN


def _idle(shares: Coverage, carries: str) -> str:
    """Why the compiled code the source carries counts as not run; "" when it may well have."""
    visible = not carries.startswith(("ctypes", "cffi", "numba", "triton", "cupy", "tilelang"))
    if shares.own_calls == 0:
        # What is called by ctypes is invisible: only a time wholly taken up by the library rules it out.
        if visible or shares.library >= 1.0 - BARELY:
            return f"its source brings compiled code ({carries}), but none of it ran"
        return ""
    if visible and shares.own < BARELY and shares.library >= MOSTLY:
        return f"its own compiled code ran for {shares.own:.1%} of the time, the library for {shares.library:.0%}"
    return ""


def _seconds(functions: Sequence[Timed]) -> float:
    return sum(max(0.0, one.self_s) for one in functions)


def _top(functions: Sequence[Timed], count: int = 3) -> str:
    """The longest ones with their share of all of them."""
    whole = _seconds(functions) or 1.0
    longest = sorted(functions, key=lambda one: -one.self_s)[:count]
    return ", ".join(f"{one.name} {one.self_s / whole:.0%}" for one in longest if one.self_s > 0.0)
