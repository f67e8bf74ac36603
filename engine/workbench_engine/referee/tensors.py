"""Numpy views of tensors whose dtype numpy may not know, poison, and non-finite patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMPY: dict[str, np.dtype[Any]] = {
    "float64": np.dtype("<f8"),
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    "bfloat16": np.dtype("<u2"),
    "int64": np.dtype("<i8"),
    "int32": np.dtype("<i4"),
    "int16": np.dtype("<i2"),
    "int8": np.dtype("i1"),
    "uint8": np.dtype("u1"),
    "bool": np.dtype("u1"),
}
"""Storage dtype; bfloat16 is kept as its 16 raw bits."""

UNIT_ROUNDOFF: dict[str, float] = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
FLOATS = frozenset(UNIT_ROUNDOFF)
PRECISION_ROUNDOFF: dict[str, float] = {
    "fp64": 2.0**-53,
    "fp32": 2.0**-24,
    "tf32": 2.0**-11,
    "fp16": 2.0**-11,
    "bf16": 2.0**-8,
}
"""Unit roundoff of the arithmetic by precision class, finest first."""


def from_float(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Reals rounded into the storage of `dtype` (bfloat16: round to nearest even on the raw bits)."""
    if dtype != "bfloat16":
        return np.array(values, dtype=NUMPY[dtype])
    bits: NDArray[np.uint32] = values.astype("<f4").view("<u4")
    rounded: NDArray[np.uint32] = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return rounded.astype("<u2")


def to_float64(stored: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """The exact values that `stored` holds."""
    if dtype == "bfloat16":
        return (stored.astype("<u4") << 16).view("<f4").astype(np.float64)
    return stored.astype(np.float64)


def poison(view: NDArray[Any], dtype: str) -> None:
    """Fill with what no honest kernel leaves: NaN for floats, an absurd pattern for integers."""
    if dtype == "bfloat16":
        view[...] = 0x7FC1
    elif dtype in FLOATS:
        view[...] = np.nan
    else:
        view[...] = np.frombuffer(b"\x7b" * view.dtype.itemsize, dtype=view.dtype)[0]


def is_poison(view: NDArray[Any], dtype: str) -> NDArray[np.bool_]:
    """Which elements still look unwritten (floats: any NaN)."""
    if dtype == "bfloat16":
        magnitude: NDArray[np.uint16] = view & np.uint16(0x7FFF)
        return magnitude > np.uint16(0x7F80)
    if dtype in FLOATS:
        reals: NDArray[np.float64] = view
        return np.isnan(reals)
    pattern = np.frombuffer(b"\x7b" * view.dtype.itemsize, dtype=view.dtype)[0]
    return np.asarray(view == pattern)
