"""Design space of RMS normalisation: fused or as the reference's chain, how the squares are summed, how rows go by."""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.cxx import (
    COMPILER_DIMENSIONS,
    COMPILER_NAIVE,
    TAILS,
    THREADS,
    VECTORS,
    Carry,
    Lanes,
    Phase,
    arithmetic,
    flags_of,
    kernel_file,
    lanes_of,
    map_pass,
    row_blocks,
    scratch_rows,
    sweep,
)
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel, Value

_DIMENSIONS = (
    Dimension(
        "fusion",
        "fusion",
        ("fused", "weighted_scratch", "chain", "squares_stored"),
        "fused: sum of squares, then one pass that writes; weighted_scratch: x * w kept in a buffer meanwhile; chain: "
        "x * r written, then times w in place; squares_stored: squares written to the output, then summed",
    ),
    Dimension(
        "summation",
        "algorithm",
        ("direct", "blocks"),
        "one sum, or partial sums of column blocks",
    ),
    Dimension(
        "root",
        "math",
        ("divide", "root_of_inverse", "newton", "newton_once"),
        "1 / sqrt(v); sqrt(1 / v); three Newton steps from a guess by bits; one step, 2e-3 off",
    ),
    Dimension("sum_vector", "vector", VECTORS, "vector style of the sum of squares"),
    Dimension("sum_steps", "loops", (1, 2, 4, 8), "independent accumulators", ordered=True),
    Dimension("write_vector", "vector", VECTORS, "vector style of the pass that writes"),
    Dimension("write_steps", "loops", (1, 2, 4), "vectors written per iteration", ordered=True),
    Dimension("tail", "loops", TAILS, "what explicit vectors that write do with the end of a row"),
    Dimension("row_block", "tiling", (1, 4, 16, 64), "rows that go through a pass before the next pass", ordered=True),
    Dimension("column_block", "tiling", (64, 256, 1024), "columns per block of the summation", ordered=True),
    Dimension("store", "memory", ("plain", "stream"), "cached or streaming stores of the result"),
    Dimension("threads", "threads", THREADS, "OpenMP schedule over row blocks"),
    *COMPILER_DIMENSIONS,
)

_NAIVE: dict[str, Value] = {
    "fusion": "chain",
    "summation": "direct",
    "root": "divide",
    "sum_vector": "plain",
    "sum_steps": 1,
    "write_vector": "plain",
    "write_steps": 1,
    "tail": "scalar",
    "row_block": 1,
    "column_block": 256,
    "store": "plain",
    "threads": "serial",
    **COMPILER_NAIVE,
}

_NEWTON_STEPS = {"newton": 3, "newton_once": 1}


def _root(kind: str) -> str:
    if kind == "divide":
        return "INLINE float root_(float v) { return 1.0f / sqrtf(v); }\n"
    if kind == "root_of_inverse":
        return "INLINE float root_(float v) { return sqrtf(1.0f / v); }\n"
    step = "r = r * (1.5f - 0.5f * v * r * r);\n"
    return f"""\
INLINE float root_(float v) {{
float r = bits_as<float>(0x5f3759df - (bits_as<int>(v) >> 1));
{step * _NEWTON_STEPS[kind]}return r;
}}
"""


def _squares(fusion: str, summation: str, lanes: Lanes, column_block: int) -> str:
    """C++ that leaves the sum of squares of the row in `q`."""
    at = "@j" if summation == "direct" else "base + @j"
    body = {
        "fused": f"@T v = load<@T>(x + {at}); @{{s}} += v * v;",
        "chain": f"@T v = load<@T>(x + {at}); @{{s}} += v * v;",
        "weighted_scratch": f"@T v = load<@T>(x + {at}); store<@T>(scratch + {at}, (@T)(v * load<@T>(W + {at}))); "
        "@{s} += v * v;",
        "squares_stored": f"@{{s}} += load<@T>(y + {at});",
    }[fusion]
    if summation == "direct":
        return sweep(lanes, "n", body, [Carry("s")]) + "const float q = s;\n"
    part = sweep(lanes, "part", body, [Carry("s")])
    return f"""\
float q = 0.0f;
for (long base = 0; base < n; base += {column_block}) {{
const long part = least({column_block}, n - base);
{part}q += s;
}}
"""


def _render(v: Mapping[str, Value]) -> Kernel:
    fusion, store = str(v["fusion"]), str(v["store"])
    sums = lanes_of(v["sum_vector"], v["sum_steps"])
    write = lanes_of(v["write_vector"], v["write_steps"], v["tail"])
    phases = []
    if fusion == "squares_stored":
        phases.append(Phase(map_pass(write, "n", "@T v = load<@T>(x + @j);", "v * v", "y")))
    total = _squares(fusion, str(v["summation"]), sums, int(v["column_block"]))
    phases.append(Phase(f"{total}const float r = root_(q / n + 1e-6f);\n", ("r",)))
    if fusion == "chain":
        phases.append(Phase(map_pass(write, "n", "", "load<@T>(x + @j) * r", "y")))
        phases.append(Phase(map_pass(write, "n", "", "load<@T>(y + @j) * load<@T>(W + @j)", "y", store)))
    elif fusion == "weighted_scratch":
        phases.append(Phase(map_pass(write, "n", "", "load<@T>(scratch + @j) * r", "y", store)))
    else:
        phases.append(Phase(map_pass(write, "n", "", "load<@T>(x + @j) * r * load<@T>(W + @j)", "y", store)))
    row = "const float* RESTRICT x = X + i * n; float* y = Y + i * n; (void)y;\n"
    block = int(v["row_block"])
    before, own = scratch_rows(block) if fusion == "weighted_scratch" else ("", "")
    loop = row_blocks(phases, row=row + own, threads=str(v["threads"]), block=block, before=before)
    head = (
        "const float* X = (const float*)in[0]; const float* RESTRICT W = (const float*)in[1];\n"
        "float* Y = (float*)out[0];\nconst long rows = dim[0], n = dim[1];\n"
    )
    return Kernel(kernel_file(arithmetic() + _root(str(v["root"])), head + loop), flags_of(v))


SPACE = DesignSpace("rmsnorm", _DIMENSIONS, _render, _NAIVE)
