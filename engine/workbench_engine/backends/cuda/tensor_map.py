"""TMA descriptors as a candidate declares them: the shape of a tensor in memory and of the box that one copy moves.

The launcher encodes them (cuTensorMapEncodeTiled) with the address of the tensor; the rules of that call are checked
here, where no driver is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from operator import mul

from msgspec import Struct

from workbench_engine.backends.cuda.expressions import Expression, ExpressionError, whole
from workbench_engine.tasks.contract import DTYPES

SWIZZLES = {"none": 0, "32B": 32, "64B": 64, "128B": 128}
MAPPED = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8")


class TensorMap(Struct, frozen=True):
    """All extents innermost first, in elements; `strides` in bytes, one for each but the innermost, () = contiguous."""

    dtype: str
    shape: tuple[Expression, ...]
    box: tuple[Expression, ...]
    strides: tuple[Expression, ...] = ()
    swizzle: str = "none"


class TensorMapValue(Struct, frozen=True):
    """The same in numbers, strides always given."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: str


def map_tensor(declared: TensorMap, dims: Mapping[str, int]) -> TensorMapValue:
    """The descriptor's numbers for `dims`. Raises ExpressionError for what the hardware does not take."""
    size = DTYPES[declared.dtype]
    shape = tuple(whole(part, dims) for part in declared.shape)
    box = tuple(whole(part, dims) for part in declared.box)
    if declared.strides:
        strides = tuple(whole(part, dims) for part in declared.strides)
    else:
        strides = tuple(accumulate((size * shape[0], *shape[1:-1]), mul)) if len(shape) > 1 else ()
    for extent in shape:
        if not 1 <= extent <= 2**32:
            raise ExpressionError(f"shape {shape}: each extent must be between 1 and 2^32")
    for extent in box:
        if not 1 <= extent <= 256:
            raise ExpressionError(f"box {box}: each extent must be between 1 and 256")
    if any(stride % 16 or not 0 < stride < 2**40 for stride in strides):
        raise ExpressionError(f"strides {strides}: each must be a multiple of 16 bytes; guard the launch with `when`")
    inner = box[0] * size
    if inner % 16:
        raise ExpressionError(f"box {box}: its innermost row has {inner} bytes; it must be a multiple of 16")
    if declared.swizzle != "none" and inner > SWIZZLES[declared.swizzle]:
        raise ExpressionError(f"box {box}: its innermost row has {inner} bytes, more than swizzle {declared.swizzle}")
    return TensorMapValue(declared.dtype, shape, strides, box, declared.swizzle)
