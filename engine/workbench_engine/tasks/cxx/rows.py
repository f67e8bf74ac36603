"""Rows in blocks: every phase over a block of rows before the next phase, with what a phase found kept between.

A block of 1 runs all phases on a row while it is in the first-level cache; a large block streams it again per phase.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from workbench_engine.tasks.cxx.loops import parallel_for


class Phase(Struct, frozen=True):
    """C++ for one row (index `i`); `makes` are the float variables it leaves for later phases."""

    code: str
    makes: tuple[str, ...] = ()


def row_blocks(phases: Sequence[Phase], *, row: str, threads: str, block: int, count: str = "rows") -> str:
    """All `phases` over `count` rows. `row` is C++ that every phase starts with (pointers of row `i`)."""
    used = [p for p in phases if p.code]
    if block == 1:
        used = [Phase("".join(p.code for p in used))]
    kept = [name for p in used[:-1] for name in p.makes]
    body = f"const long end = least(top + {block}, {count});\n"
    body += "".join(f"float kept_{name}[{block}];\n" for name in kept)
    known: list[str] = []
    for k, phase in enumerate(used):
        recall = "".join(f"const float {name} = kept_{name}[i - top]; (void){name};\n" for name in known)
        keep = "".join(f"kept_{name}[i - top] = {name};\n" for name in phase.makes) if k < len(used) - 1 else ""
        body += f"for (long i = top; i < end; ++i) {{\n{row}{recall}{phase.code}{keep}}}\n"
        known += phase.makes
    return parallel_for(threads, "top", count, body, str(block))
