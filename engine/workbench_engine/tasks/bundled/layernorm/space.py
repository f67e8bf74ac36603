"""Design space of layer normalisation: how the moments are found, what is kept, how rows and columns are walked."""

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
        "moments",
        "algorithm",
        ("two_pass", "centred_scratch", "one_pass", "pivot", "blocks"),
        "two_pass: mean, then squares of the differences; centred_scratch: the differences are kept in a buffer; "
        "one_pass: sum and sum of squares together (cancels when the mean is large); pivot: the same around the row's "
        "first element; blocks: moments of column blocks, merged",
    ),
    Dimension(
        "affine",
        "algorithm",
        ("subtract", "folded", "weighted", "eps_outside"),
        "subtract: ((x - mean) * r) * w + b; folded: x * r + (-mean * r) first; weighted: "
        "(x - mean) * (r * w) + b; eps_outside: 1 / (std + eps), wrong",
    ),
    Dimension("moment_vector", "vector", VECTORS, "vector style of the moment passes"),
    Dimension("moment_steps", "loops", (1, 2, 4, 8), "independent accumulators", ordered=True),
    Dimension("write_vector", "vector", VECTORS, "vector style of the pass that writes"),
    Dimension("write_steps", "loops", (1, 2, 4), "vectors written per iteration", ordered=True),
    Dimension("tail", "loops", TAILS, "what explicit vectors that write do with the end of a row"),
    Dimension("row_block", "tiling", (1, 4, 16, 64), "rows that go through a pass before the next pass", ordered=True),
    Dimension("column_block", "tiling", (64, 256, 1024), "columns per block of `blocks`", ordered=True),
    Dimension("store", "memory", ("plain", "stream"), "cached or streaming stores of the result"),
    Dimension("threads", "threads", THREADS, "OpenMP schedule over row blocks"),
    *COMPILER_DIMENSIONS,
)

_NAIVE: dict[str, Value] = {
    "moments": "two_pass",
    "affine": "subtract",
    "moment_vector": "plain",
    "moment_steps": 1,
    "write_vector": "plain",
    "write_steps": 1,
    "tail": "scalar",
    "row_block": 1,
    "column_block": 256,
    "store": "plain",
    "threads": "serial",
    **COMPILER_NAIVE,
}


def _sum(lanes: Lanes) -> str:
    return sweep(lanes, "n", "@{s} += load<@T>(x + @j);", [Carry("s")]) + "const float mean = s / n;\n"


def _moments(kind: str, lanes: Lanes, column_block: int) -> str:
    """C++ that leaves `mean` and `q`, the sum of squared differences."""
    if kind == "two_pass":
        return _sum(lanes) + sweep(lanes, "n", "@T d = load<@T>(x + @j) - mean; @{q} += d * d;", [Carry("q")])
    if kind == "centred_scratch":
        body = "@T d = load<@T>(x + @j) - mean; store<@T>(scratch + @j, d); @{q} += d * d;"
        return _sum(lanes) + sweep(lanes, "n", body, [Carry("q")])
    if kind == "one_pass":
        body = "@T v = load<@T>(x + @j); @{s} += v; @{t} += v * v;"
        return sweep(lanes, "n", body, [Carry("s"), Carry("t")]) + "const float mean = s / n, q = t - s * mean;\n"
    if kind == "pivot":
        body = "@T v = load<@T>(x + @j) - pivot; @{s} += v; @{t} += v * v;"
        return (
            "const float pivot = x[0];\n"
            + sweep(lanes, "n", body, [Carry("s"), Carry("t")])
            + "const float mean = pivot + s / n, q = t - s * (s / n);\n"
        )
    part_sum = sweep(lanes, "part", "@{s} += load<@T>(x + base + @j);", [Carry("s")])
    part_square = sweep(lanes, "part", "@T d = load<@T>(x + base + @j) - own; @{t} += d * d;", [Carry("t")])
    return f"""\
float mean = 0.0f, q = 0.0f;
for (long base = 0; base < n; base += {column_block}) {{
const long part = least({column_block}, n - base);
{part_sum}const float own = s / part, delta = own - mean;
{part_square}const float share = (float)part / (float)(base + part);
q += t + delta * delta * base * share;
mean += delta * share;
}}
"""


def _render(v: Mapping[str, Value]) -> Kernel:
    kind, affine = str(v["moments"]), str(v["affine"])
    moment = lanes_of(v["moment_vector"], v["moment_steps"])
    write = lanes_of(v["write_vector"], v["write_steps"], v["tail"])
    deviation = "sqrtf(q / n + 1e-5f)" if affine != "eps_outside" else "(sqrtf(q / n) + 1e-5f)"
    first = _moments(kind, moment, int(v["column_block"])) + f"const float r = 1.0f / {deviation};\n"
    scratch = kind == "centred_scratch"
    if affine == "folded" and not scratch:
        first += "const float shift = -mean * r;\n"
        value, makes = "(load<@T>(x + @j) * r + shift)", ("r", "shift")
    else:
        value = "(load<@T>(scratch + @j) * r)" if scratch else "((load<@T>(x + @j) - mean) * r)"
        makes = ("r", "mean")
    value += " * load<@T>(W + @j) + load<@T>(B + @j)"
    if affine == "weighted":
        value = value.replace(" * r) * load<@T>(W + @j)", ") * (r * load<@T>(W + @j))")
    phases = [Phase(first, makes), Phase(map_pass(write, "n", "", value, "y", str(v["store"])))]
    row = "const float* RESTRICT x = X + i * n; float* y = Y + i * n; (void)y;\n"
    block = int(v["row_block"])
    before, own = scratch_rows(block) if scratch else ("", "")
    loop = row_blocks(phases, row=row + own, threads=str(v["threads"]), block=block, before=before)
    head = (
        "const float* X = (const float*)in[0]; const float* RESTRICT W = (const float*)in[1];\n"
        "const float* RESTRICT B = (const float*)in[2]; float* Y = (float*)out[0];\n"
        "const long rows = dim[0], n = dim[1];\n"
    )
    return Kernel(kernel_file(arithmetic(), head + loop), flags_of(v))


SPACE = DesignSpace("layernorm", _DIMENSIONS, _render, _NAIVE)
