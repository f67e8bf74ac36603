"""A chain of dependent calls: each call's inputs are changed by the digest of the output before it.

No call can start, in earnest, before the one before it is done, and the digests commit the worker to its outputs at
the moment it says so. The station repeats the same changes on its own copy, so this file is used on both sides;
standard library only and importable by path. (Referee's facts, defence D8: commit and reveal.)
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

ITEM = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
ITEM |= {"int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1}
SWAPS = 4
"""Pairs of elements exchanged in each input before a call: an exchange keeps every domain."""
CHUNK = 256
CHUNKS = 24
MASK = (1 << 64) - 1

Place = Sequence[Any]
"""Byte offset in the arena, bytes, torch's name of the dtype, shape."""


def following(x: int) -> int:
    """The next 64-bit number of a linear congruential sequence: unpredictable enough for who has not the seed."""
    return (x * 6364136223846793005 + 1442695040888963407) & MASK


def disturb(arena: Any, inputs: Sequence[Place], digest: int) -> None:
    """Exchange a few elements of each input, at places that `digest` decides."""
    x = digest & MASK
    for offset, nbytes, dtype, _ in inputs:
        size = ITEM[dtype]
        count = nbytes // size
        if count < 2:
            continue
        for _ in range(SWAPS):
            x = following(x)
            a = offset + (x >> 33) % count * size
            x = following(x)
            b = offset + (x >> 33) % count * size
            kept = bytes(arena[a : a + size])
            arena[a : a + size] = arena[b : b + size]
            arena[b : b + size] = kept


def digest_of(arena: Any, outputs: Sequence[Place], before: int) -> int:
    """32-bit digest of chunks of the outputs; which chunks, the digest before decides."""
    x = following(before & MASK)
    value = before & 0xFFFFFFFF
    for offset, nbytes, _, _ in outputs:
        if nbytes <= CHUNK * CHUNKS:
            value = zlib.crc32(arena[offset : offset + nbytes], value)
            continue
        for _ in range(CHUNKS):
            x = following(x)
            start = offset + (x >> 33) % (nbytes - CHUNK + 1)
            value = zlib.crc32(arena[start : start + CHUNK], value)
    return value
