"""Shared blocks of C++ from which the bundled design spaces render their kernels.

A kernel is text put together from `preamble` (types, loads, stores), `arithmetic` (exp, log, tanh, erf in several
precisions), `loops` (sweeps over one axis, rows over threads) and `flags` (compiler dimensions). No header of the
standard library is included: a kernel compiles in about 0.2 s, with <immintrin.h> it would take a second.
"""

from workbench_engine.tasks.cxx.arithmetic import ERF, EXP, LOG, TANH, arithmetic
from workbench_engine.tasks.cxx.flags import COMPILER_DIMENSIONS, COMPILER_NAIVE, flags_of
from workbench_engine.tasks.cxx.loops import (
    TAILS,
    THREADS,
    VECTORS,
    Carry,
    Lanes,
    lanes_of,
    map_pass,
    parallel_for,
    sweep,
)
from workbench_engine.tasks.cxx.preamble import PREAMBLE, kernel_file
from workbench_engine.tasks.cxx.rows import Phase, row_blocks, scratch_rows

__all__ = [
    "COMPILER_DIMENSIONS",
    "COMPILER_NAIVE",
    "ERF",
    "EXP",
    "LOG",
    "PREAMBLE",
    "TAILS",
    "TANH",
    "THREADS",
    "VECTORS",
    "Carry",
    "Lanes",
    "Phase",
    "arithmetic",
    "flags_of",
    "kernel_file",
    "lanes_of",
    "map_pass",
    "parallel_for",
    "row_blocks",
    "scratch_rows",
    "sweep",
]
