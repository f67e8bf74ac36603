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


SCRATCH_ROW = 8192
"""Floats of scratch a row gets; longer rows have to do without."""


def scratch_rows(block: int) -> tuple[str, str]:
    """C++ for a scratch row of each row of a block, `scratch`: before the rows, and at the start of every row.

    Longer rows use the output row `y`. Blocks whose scratch would not fit a thread's stack do not compile.
    """
    before = (
        f'static_assert({block} * {SCRATCH_ROW} * 4 <= 1 << 20, "scratch of {block} rows is over 1 MiB of stack");\n'
        f"float room[{block}][{SCRATCH_ROW}] __attribute__((aligned(64)));\n"
    )
    return before, f"float* scratch = n <= {SCRATCH_ROW} ? room[i - top] : y; (void)scratch;\n"


def row_blocks(
    phases: Sequence[Phase], *, row: str, threads: str, block: int, count: str = "rows", before: str = ""
) -> str:
    """All `phases` over `count` rows.

    `before` is C++ at the start of a block, `row` at the start of every phase (pointers of row `i`).
    """
    used = [p for p in phases if p.code]
    if block == 1:
        used = [Phase("".join(p.code for p in used))]
    kept = [name for p in used[:-1] for name in p.makes]
    body = f"const long end = least(top + {block}, {count});\n{before}"
    body += "".join(f"float kept_{name}[{block}];\n" for name in kept)
    known: list[str] = []
    for k, phase in enumerate(used):
        recall = "".join(f"const float {name} = kept_{name}[i - top]; (void){name};\n" for name in known)
        keep = "".join(f"kept_{name}[i - top] = {name};\n" for name in phase.makes) if k < len(used) - 1 else ""
        body += f"for (long i = top; i < end; ++i) {{\n{row}{recall}{phase.code}{keep}}}\n"
        known += phase.makes
    return parallel_for(threads, "top", count, body, str(block))
