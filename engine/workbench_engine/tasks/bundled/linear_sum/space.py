"""Design space of `linear_sum`: how many rows of the weight are added up before they meet x.

The sum over outputs commutes with the product. `group` walks from the dense product (1) to one dot product for each
row of x ("all"), with work falling as 1/group; then the sum of the weight's rows, bound by memory, is what is left.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.cxx import (
    COMPILER_DIMENSIONS,
    COMPILER_NAIVE,
    THREADS,
    VECTORS,
    Carry,
    Lanes,
    flags_of,
    kernel_file,
    parallel_for,
    sweep,
)
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel, Value


def _column_sums(v: Mapping[str, Value], lanes: Lanes) -> str:
    """c[j] = sum of w[g + r][k + j] over the `h` rows of the group, j below `n`."""
    rows = int(v["rows_at_once"])
    if v["sums"] == "down columns":
        return f"""\
for (long j = 0; j < n; ++j) {{
float s = 0.0f;
#pragma GCC unroll {rows}
for (long r = 0; r < h; ++r) s += q[r * inner + j];
c[j] = s;
}}
"""
    if v["sums"] == "in registers":
        partial = "".join(f"@T s{k} = all<@T>(0.0f); " for k in range(rows))
        adds = "".join(f"s{k} = s{k} + load<@T>(q + (r + {k}) * inner + @j); " for k in range(rows))
        total = " + ".join(f"s{k}" for k in range(rows))
        body = (
            f"{partial}long r = 0; for (; r + {rows} <= h; r += {rows}) {{ {adds}}} "
            f"for (; r < h; ++r) s0 = s0 + load<@T>(q + r * inner + @j); store<@T>(c + @j, (@T)({total}));"
        )
        return sweep(lanes, "n", body)
    clear = sweep(lanes, "n", "store<@T>(c + @j, all<@T>(0.0f));")
    several = " + ".join(["load<@T>(c + @j)", *(f"load<@T>(t + {k} * inner + @j)" for k in range(rows))])
    one = sweep(lanes, "n", "store<@T>(c + @j, (@T)(load<@T>(c + @j) + load<@T>(t + @j)));")
    many = sweep(lanes, "n", f"store<@T>(c + @j, (@T)({several}));")
    return f"""\
{clear}long r = 0;
for (; r + {rows} <= h; r += {rows}) {{
const float* t = q + r * inner;
{many}}}
for (; r < h; ++r) {{
const float* t = q + r * inner;
{one}}}
"""


def _dots(v: Mapping[str, Value], lanes: Lanes, count: int) -> str:
    """y[b + i] += x[b + i] . f for `count` rows of x at once, which share the loads of f."""
    body = "@T f_ = load<@T>(f + @j); " + " ".join(
        f"@{{d{i}}} = @{{d{i}}} + load<@T>(p + {i} * inner + @j) * f_;" for i in range(count)
    )
    product = sweep(lanes, "n", body, [Carry(f"d{i}") for i in range(count)])
    scaled = "0.75f * d{}" if v["scale"] == "folded" else "d{} / 2.0f"
    ends = "".join(f"y[b + {i}] += {scaled.format(i)};\n" for i in range(count))
    return f"const float* p = x + b * inner + k;\n{product}{ends}"


def _render(v: Mapping[str, Value]) -> Kernel:
    lanes = Lanes(str(v["vector"]), int(v["steps"]), str(v["tail"]))
    whole = Lanes(str(v["vector"]), 1)
    group = "outer" if v["group"] == "all" else str(v["group"])
    panel = "inner" if v["panel"] == "all" else str(v["panel"])
    together = int(v["x_rows"])
    threads = str(v["threads"])
    sums = "const float* f = q;\n" if v["group"] == "1" else _column_sums(v, whole) + "const float* f = c;\n"
    head = f"""\
const long h = least({group}, outer - g);
for (long k = 0; k < inner; k += {panel}) {{
const long n = least({panel}, inner - k);
const float* q = w + g * inner + k;
"""
    tail = f"for (long b = batch / {together} * {together}; b < batch; ++b) {{\n{_dots(v, lanes, 1)}}}\n"
    if v["order"] == "groups outside":
        many = parallel_for(threads, "b", f"batch / {together} * {together}", _dots(v, lanes, together), str(together))
        work = f"""\
float* c = (float*)__builtin_malloc((inner + 1) * sizeof(float));
for (long g = 0; g < outer; g += {group}) {{
(void)c;
{head}(void)h;
{sums}{many}{tail if together > 1 else ""}}}
}}
__builtin_free(c);
"""
    else:
        inner = f"""\
float* c = (float*)__builtin_malloc((inner + 1) * sizeof(float));
for (long g = 0; g < outer; g += {group}) {{
{head}(void)h;
{sums}{_dots(v, lanes, 1)}}}
}}
__builtin_free(c);
"""
        work = parallel_for(threads, "b", "batch", inner)
    last = "" if v["scale"] == "folded" else "for (long b = 0; b < batch; ++b) y[b] *= 1.5f;\n"
    body = f"""\
const long batch = dim[0], inner = dim[1], outer = dim[2];
const float* RESTRICT x = (const float*)in[0];
const float* RESTRICT w = (const float*)in[1];
float* RESTRICT y = (float*)out[0];
for (long b = 0; b < batch; ++b) y[b] = 0.0f;
{work}{last}"""
    return Kernel(kernel_file("", body), flags_of(v))


SPACE = DesignSpace(
    "linear_sum",
    (
        Dimension(
            "group",
            "algorithm",
            ("1", "4", "16", "64", "256", "all"),
            "rows of the weight summed before the product",
            ordered=True,
        ),
        Dimension("scale", "fusion", ("as written", "folded"), "two factors one after the other, or one"),
        Dimension("order", "loops", ("batch outside", "groups outside"), "whether sums are made again for each x"),
        Dimension("sums", "loops", ("down columns", "row by row", "in registers"), "how rows are added up"),
        Dimension("rows_at_once", "loops", (1, 2, 4, 8), "rows added in one go", ordered=True),
        Dimension("x_rows", "tiling", (1, 2, 4), "rows of x that share the loads of a sum", ordered=True),
        Dimension("panel", "tiling", ("64", "256", "all"), "columns handled at a time", ordered=True),
        Dimension("vector", "vector", VECTORS, "style of the innermost loops"),
        Dimension("steps", "vector", (1, 2, 4), "accumulators of a dot product", ordered=True),
        Dimension("tail", "vector", ("scalar", "none"), "what becomes of the columns that fill no vector"),
        Dimension("threads", "threads", THREADS, "schedule of the rows of x"),
        *COMPILER_DIMENSIONS,
    ),
    _render,
    {
        "group": "1",
        "scale": "as written",
        "order": "batch outside",
        "sums": "row by row",
        "rows_at_once": 1,
        "x_rows": 1,
        "panel": "all",
        "vector": "plain",
        "steps": 1,
        "tail": "scalar",
        "threads": "serial",
        **COMPILER_NAIVE,
    },
)
