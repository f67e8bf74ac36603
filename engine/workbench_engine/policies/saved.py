"""The bytes of a sampler's state: msgpack with raw little-endian arrays, never pickle."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec import Struct

from workbench_engine.policies.proposing import Indices
from workbench_engine.tasks.design import DesignSpace


class SavedArray(Struct, frozen=True):
    """One array: numpy dtype string, shape, raw bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class SavedSample(Struct, frozen=True):
    """`number` is the pending sample's id, -1 inside a finished group; `condition` indexes `SavedPolicy.conditions`."""

    number: int
    indices: Indices
    logp_old: float
    condition: int


class SavedGroup(Struct, frozen=True):
    samples: list[SavedSample]
    rewards: list[float]


class SavedPolicy(Struct, frozen=True, tag="sampler/1"):
    """A sampler between two calls. The learner's fields are empty for a policy that does not learn."""

    policy: str
    task: str
    sizes: list[int]
    rng: tuple[int, tuple[int, ...], float | None]
    seen: list[Indices]
    samples: int
    version: int
    step: int = 0
    adam_step: int = 0
    arrays: dict[str, SavedArray] = {}
    conditions: list[list[SavedArray]] = []
    pending: list[SavedSample] = []
    groups: list[SavedGroup] = []
    tried: list[tuple[Indices, float]] = []


def save(saved: SavedPolicy) -> bytes:
    return msgspec.msgpack.encode(saved)


def load(state: bytes, policy: str, space: DesignSpace) -> SavedPolicy:
    """The saved state. Raises ValueError, in one line, when it is damaged or of another policy, task or space."""
    try:
        saved = msgspec.msgpack.decode(state, type=SavedPolicy)
    except msgspec.DecodeError as error:
        raise ValueError(f"state is not of policy {policy!r}: {error}") from None
    if (saved.policy, saved.task) != (policy, space.task):
        raise ValueError(
            f"state of policy {saved.policy!r}, task {saved.task!r} cannot restore {policy!r}, task {space.task!r}"
        )
    if saved.sizes != [len(d.values) for d in space.dimensions]:
        raise ValueError(f"state of policy {policy!r}: the design space of {space.task!r} has changed; start afresh")
    return saved


def pack(array: np.ndarray) -> SavedArray:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return SavedArray(little.dtype.str, array.shape, little.tobytes())


def unpack(saved: SavedArray) -> np.ndarray:
    """A writable array. Raises ValueError when the bytes do not fit the shape."""
    return np.frombuffer(saved.data, dtype=np.dtype(saved.dtype)).reshape(saved.shape).copy()
