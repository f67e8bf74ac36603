"""What a CUDA candidate asks for: which kernels run in which order, over which grid, with which arguments.

A `LaunchSpec` is what the file says, in expressions; `plan` turns it into numbers for the dims of one case. The
candidate holds device code alone: our launcher reads the plan, allocates the workspace and starts the kernels.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from workbench_engine.backends.cuda.arch import Capacity
from workbench_engine.backends.cuda.expressions import Expression, ExpressionError, real, show, whole
from workbench_engine.backends.cuda.tensor_map import TensorMap, TensorMapValue, map_tensor

Place = Literal["in", "out", "workspace"]

SCALARS = {"int32": "<i", "uint32": "<I", "int64": "<q", "uint64": "<Q", "float32": "<f", "float64": "<d"}
"""What a scalar argument may be, with its form in memory."""

MOST_LAUNCHES = 64
MOST_ARGUMENTS = 64
MOST_WORKSPACE = 16 << 30
KERNEL = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*(\s*<[\w\s,:*&<>-]+>)?")
"""A function's name, or a name expression of a template: `softmax`, `tiles::softmax<float, 4>`."""


class LaunchError(Exception):
    """A launch that cannot be made. `str()` is one line: which launch, which part of it, what is wrong, what to do."""


class Pointer(Struct, frozen=True, tag="pointer"):
    """`in[index]`: inputs in the order of `forward`, then the module's state; `out[index]`; `workspace[index]`."""

    place: Place
    index: int


class Scalar(Struct, frozen=True, tag="scalar"):
    """A number passed by value; `dtype` is a key of `SCALARS`."""

    dtype: str
    value: Expression


class TensorMapArgument(Struct, frozen=True, tag="tensor_map"):
    """A TMA descriptor (`const __grid_constant__ CUtensorMap`) of one tensor."""

    of: Pointer
    map: TensorMap


Argument = Pointer | Scalar | TensorMapArgument


class Launch(Struct, frozen=True):
    """One kernel launch. `grid` and `block` have 1 to 3 extents, x first; `shared` is dynamic shared memory in bytes.

    `cluster`: blocks of a thread block cluster, () for none. `when`: skipped in cases where this is 0.
    """

    kernel: str
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    arguments: tuple[Argument, ...]
    shared: Expression
    cluster: tuple[Expression, ...] = ()
    cooperative: bool = False
    when: Expression | None = None


class Workspace(Struct, frozen=True):
    """Scratch in device memory, 256-byte aligned. `zero`: cleared before each call, within the time that counts."""

    bytes: Expression
    zero: bool = False


class LaunchSpec(Struct, frozen=True):
    """All launches of a call, in the order of one stream."""

    launches: tuple[Launch, ...]
    workspace: tuple[Workspace, ...] = ()

    @property
    def kernels(self) -> tuple[str, ...]:
        """Each kernel once, in the order of first use."""
        return tuple(dict.fromkeys(launch.kernel for launch in self.launches))


class ScalarValue(Struct, frozen=True, tag="scalar"):
    """The argument's bytes, little-endian."""

    dtype: str
    packed: bytes


class TensorMapEncoding(Struct, frozen=True, tag="tensor_map"):
    of: Pointer
    map: TensorMapValue


Extent = tuple[int, int, int]


class PlannedLaunch(Struct, frozen=True):
    """A launch in numbers. `cluster` is (1, 1, 1) for none; `shared_bytes` is dynamic shared memory."""

    kernel: str
    grid: Extent
    block: Extent
    shared_bytes: int
    arguments: tuple[Pointer | ScalarValue | TensorMapEncoding, ...]
    cluster: Extent = (1, 1, 1)
    cooperative: bool = False


class Plan(Struct, frozen=True):
    """All that a launcher needs for one case. `workspace`: (bytes, cleared before each call)."""

    launches: tuple[PlannedLaunch, ...]
    workspace: tuple[tuple[int, bool], ...] = ()


def plan(spec: LaunchSpec, dims: Mapping[str, int], inputs: int, outputs: int, capacity: Capacity) -> Plan:
    """The launches for one case. `inputs` counts inputs and state, `outputs` the outputs of the task.

    Raises LaunchError for what the card could not launch: the error a person would otherwise meet on the GPU.
    """
    workspace = []
    for index, room in enumerate(spec.workspace):
        size = _whole(room.bytes, dims, f"workspace[{index}]")
        if not 0 <= size <= MOST_WORKSPACE:
            raise LaunchError(f"workspace[{index}]: {size} bytes; between 0 and {MOST_WORKSPACE} can be had")
        workspace.append((size, room.zero))
    counts = {"in": inputs, "out": outputs, "workspace": len(workspace)}
    planned = []
    for number, launch in enumerate(spec.launches, 1):
        where = f"launch {number} ({launch.kernel})"
        if launch.when is None or _whole(launch.when, dims, f"{where}, when"):
            planned.append(_planned(launch, dims, counts, capacity, where))
    if not planned:
        raise LaunchError("no launch is left: every `when` is 0 for these dims; let one launch cover the rest")
    return Plan(tuple(planned), tuple(workspace))


def _planned(
    launch: Launch, dims: Mapping[str, int], counts: Mapping[str, int], capacity: Capacity, where: str
) -> PlannedLaunch:
    grid = _extent(launch.grid, dims, capacity.grid, f"{where}, grid")
    block = _extent(launch.block, dims, capacity.block, f"{where}, block")
    threads = block[0] * block[1] * block[2]
    if threads > capacity.threads:
        raise LaunchError(f"{where}, block: {threads} threads; a block has at most {capacity.threads}")
    shared = _whole(launch.shared, dims, f"{where}, shared")
    if not 0 <= shared <= capacity.shared_bytes:
        raise LaunchError(
            f"{where}, shared: {show(launch.shared)} = {shared} bytes; a block has at most {capacity.shared_bytes}"
        )
    cluster = (1, 1, 1)
    if launch.cluster:
        cluster = _extent(launch.cluster, dims, (16, 16, 16), f"{where}, cluster")
        if not capacity.cluster:
            raise LaunchError(f"{where}, cluster: clusters need compute capability 9.0 or newer; leave `cluster` out")
        if cluster[0] * cluster[1] * cluster[2] > capacity.cluster:
            raise LaunchError(f"{where}, cluster: more than {capacity.cluster} blocks")
        if any(blocks % size for blocks, size in zip(grid, cluster, strict=True)):
            raise LaunchError(f"{where}, cluster: the grid {grid} is no multiple of {cluster}; round the grid up")
    arguments = tuple(
        _argument(argument, dims, counts, f"{where}, argument {index}")
        for index, argument in enumerate(launch.arguments)
    )
    return PlannedLaunch(launch.kernel, grid, block, shared, arguments, cluster, launch.cooperative)


def _argument(
    argument: Argument, dims: Mapping[str, int], counts: Mapping[str, int], where: str
) -> Pointer | ScalarValue | TensorMapEncoding:
    match argument:
        case Scalar(dtype, value):
            number: int | float = 0
            try:
                number = real(value, dims) if dtype.startswith("float") else whole(value, dims)
                return ScalarValue(dtype, struct.pack(SCALARS[dtype], number))
            except ExpressionError as error:
                raise LaunchError(f"{where}: {error}") from None
            except (struct.error, OverflowError):
                wider = f"; write int64({show(value)})" if dtype == "int32" else ""
                raise LaunchError(f"{where}: {show(value)} = {number} does not fit into {dtype}{wider}") from None
        case TensorMapArgument(of, tensor_map):
            _known(of, counts, where)
            try:
                return TensorMapEncoding(of, map_tensor(tensor_map, dims))
            except ExpressionError as error:
                raise LaunchError(f"{where}, tensor_map: {error}") from None
    _known(argument, counts, where)
    return argument


def _known(pointer: Pointer, counts: Mapping[str, int], where: str) -> None:
    count = counts[pointer.place]
    if pointer.index >= count:
        there = f"{pointer.place}[0] to {pointer.place}[{count - 1}]" if count else "none"
        raise LaunchError(f"{where}: there is no {pointer.place}[{pointer.index}]; there is {there}")


def _extent(
    parts: tuple[Expression, ...], dims: Mapping[str, int], most: tuple[int, int, int], where: str
) -> tuple[int, int, int]:
    values = [_whole(part, dims, where) for part in parts] + [1] * (3 - len(parts))
    for axis, value, limit in zip("xyz", values, most, strict=True):
        if not 1 <= value <= limit:
            raise LaunchError(f"{where}: {axis} is {value}; it must be between 1 and {limit}")
    return values[0], values[1], values[2]


def _whole(expression: Expression, dims: Mapping[str, int], where: str) -> int:
    try:
        return whole(expression, dims)
    except ExpressionError as error:
        raise LaunchError(f"{where}: {error}") from None
