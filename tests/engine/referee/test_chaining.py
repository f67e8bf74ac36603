"""Both ends of a chain make the same changes from the same digests."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.referee.workers import chaining

INPUTS: list[list[Any]] = [[16, 400, "float32", [100]], [512, 64, "int64", [8]]]
OUTPUT: list[list[Any]] = [[1024, 8192, "float32", [2048]]]


@given(st.binary(min_size=1024, max_size=1024), st.integers(0, chaining.MASK))
def test_a_disturbance_only_exchanges_elements(contents: bytes, digest: int) -> None:
    arena = bytearray(contents)
    chaining.disturb(arena, INPUTS, digest)
    for offset, nbytes, dtype, _ in INPUTS:
        size = chaining.ITEM[dtype]

        def parts(data: bytes, start: int = offset, end: int = offset + nbytes, step: int = size) -> list[bytes]:
            return sorted(data[i : i + step] for i in range(start, end, step))

        assert parts(bytes(arena)) == parts(contents)
    assert arena[:16] == contents[:16] and arena[416:512] == contents[416:512] and arena[576:] == contents[576:]


@given(st.integers(0, chaining.MASK))
def test_offsets_in_the_arena_do_not_matter(digest: int) -> None:
    whole = bytearray(range(256)) * 4
    part = bytearray(whole[16:416])
    chaining.disturb(whole, INPUTS[:1], digest)
    chaining.disturb(part, [[0, 400, "float32", [100]]], digest)
    assert part == whole[16:416]


def test_different_digests_disturb_differently() -> None:
    seen = set()
    for digest in range(50):
        arena = bytearray(range(256)) * 4
        chaining.disturb(arena, INPUTS, digest)
        seen.add(bytes(arena))
    assert len(seen) > 45


def test_the_digest_depends_on_output_and_history() -> None:
    arena = bytearray(16384)
    first = chaining.digest_of(arena, OUTPUT, 1)
    assert first == chaining.digest_of(arena, OUTPUT, 1) != chaining.digest_of(arena, OUTPUT, 2)
    arena[1024:9216] = bytes([1]) * 8192
    assert chaining.digest_of(arena, OUTPUT, 1) != first
