"""Design space of row softmax: how many passes, what they remember, how exp is computed, how rows are blocked."""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.cxx import (
    COMPILER_DIMENSIONS,
    COMPILER_NAIVE,
    EXP,
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
        "algorithm",
        "algorithm",
        ("recompute", "in_output", "in_scratch", "online", "no_max"),
        "recompute: exp twice; in_output / in_scratch: exp kept in the output row or a buffer; online: maximum and "
        "sum in one blocked pass; no_max: no subtraction of the maximum (overflows for large inputs)",
    ),
    Dimension("normalise", "algorithm", ("divide", "multiply"), "divide by the sum or multiply by its reciprocal"),
    Dimension("exp", "math", EXP, "implementation of exp"),
    Dimension("max_vector", "vector", VECTORS, "vector style of the maximum pass"),
    Dimension("max_steps", "loops", (1, 2, 4, 8), "independent maxima in flight", ordered=True),
    Dimension("exp_vector", "vector", VECTORS, "vector style of the exp passes"),
    Dimension("exp_steps", "loops", (1, 2, 4), "independent sums in flight", ordered=True),
    Dimension("tail", "loops", TAILS, "what explicit vectors of exp do with the end of a row"),
    Dimension("row_block", "tiling", (1, 4, 16, 64), "rows that go through a pass before the next pass", ordered=True),
    Dimension("column_block", "tiling", (64, 256, 1024), "columns per step of the online algorithm", ordered=True),
    Dimension("store", "memory", ("plain", "stream"), "cached or streaming stores of the result"),
    Dimension("threads", "threads", THREADS, "OpenMP schedule over row blocks"),
    *COMPILER_DIMENSIONS,
)

_NAIVE: dict[str, Value] = {
    "algorithm": "recompute",
    "normalise": "divide",
    "exp": "libm",
    "max_vector": "plain",
    "max_steps": 1,
    "exp_vector": "plain",
    "exp_steps": 1,
    "tail": "scalar",
    "row_block": 1,
    "column_block": 256,
    "store": "plain",
    "threads": "serial",
    **COMPILER_NAIVE,
}

_KEEP = {
    "recompute": "",
    "online": "",
    "in_output": "store<@T>(y + @j, e); ",
    "no_max": "store<@T>(y + @j, e); ",
    "in_scratch": "store<@T>(scratch + @j, e); ",
}
_KEPT = {
    "recompute": "exp_<@T>(load<@T>(x + @j) - m)",
    "online": "exp_<@T>(load<@T>(x + @j) - m)",
    "in_output": "load<@T>(y + @j)",
    "no_max": "load<@T>(y + @j)",
    "in_scratch": "load<@T>(scratch + @j)",
}


def _online(maximum: Lanes, exponent: Lanes, column_block: int) -> str:
    """One pass: the sum so far is rescaled whenever a block of columns raises the maximum."""
    block_max = sweep(maximum, "part", "@{t} = most(@{t}, load<@T>(x + base + @j));", [Carry("t", "max")])
    block_sum = sweep(exponent, "part", "@{u} += exp_<@T>(load<@T>(x + base + @j) - m);", [Carry("u")])
    return f"""\
float m = LOWEST, s = 0.0f;
for (long base = 0; base < n; base += {column_block}) {{
const long part = least({column_block}, n - base);
{block_max}if (t > m) {{ s *= exp_<float>(m - t); m = t; }}
{block_sum}s += u;
}}
"""


def _render(v: Mapping[str, Value]) -> Kernel:
    algorithm = str(v["algorithm"])
    maximum = lanes_of(v["max_vector"], v["max_steps"])
    exponent = lanes_of(v["exp_vector"], v["exp_steps"], v["tail"])
    factor, scale = ("s", "/ f") if v["normalise"] == "divide" else ("1.0f / s", "* f")
    if algorithm == "online":
        phases = [Phase(f"{_online(maximum, exponent, int(v['column_block']))}const float f = {factor};\n", ("m", "f"))]
    else:
        if algorithm == "no_max":
            top = "const float m = 0.0f;\n"
        else:
            top = sweep(maximum, "n", "@{m} = most(@{m}, load<@T>(x + @j));", [Carry("m", "max")])
        body = f"@T e = exp_<@T>(load<@T>(x + @j) - m); {_KEEP[algorithm]}@{{s}} += e;"
        total = sweep(exponent, "n", body, [Carry("s")])
        phases = [Phase(top, ("m",)), Phase(f"{total}const float f = {factor};\n", ("f",))]
    phases.append(Phase(map_pass(exponent, "n", "", f"{_KEPT[algorithm]} {scale}", "y", str(v["store"]))))
    row = "const float* RESTRICT x = X + i * n; float* y = Y + i * n; (void)y;\n"
    block = int(v["row_block"])
    before, own = scratch_rows(block) if algorithm == "in_scratch" else ("", "")
    loop = row_blocks(phases, row=row + own, threads=str(v["threads"]), block=block, before=before)
    head = "const float* X = (const float*)in[0]; float* Y = (float*)out[0];\nconst long rows = dim[0], n = dim[1];\n"
    return Kernel(kernel_file(arithmetic(exp=str(v["exp"])), head + loop), flags_of(v))


SPACE = DesignSpace("softmax_rows", _DIMENSIONS, _render, _NAIVE)
