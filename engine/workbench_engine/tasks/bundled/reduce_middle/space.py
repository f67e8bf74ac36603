"""Design space of `reduce_middle`: log-sum-exp over a strided dimension.

The reduced dimension is not contiguous, so lanes run across columns. `chunk` rows share one maximum: 1 is the online
form (two exps an element), "all" the form of two walks, and "no maximum" is right only while exp does not overflow.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.cxx import (
    COMPILER_DIMENSIONS,
    COMPILER_NAIVE,
    EXP,
    THREADS,
    VECTORS,
    arithmetic,
    flags_of,
    kernel_file,
    parallel_for,
)
from workbench_engine.tasks.cxx.chunked import covered
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel, Value


def _in_registers(v: Mapping[str, Value]) -> str:
    """One vector of columns at a time, maximum and sums in registers, `chains` independent sums."""
    chains = int(v["chains"])
    sums = "".join(f"@T s{k} = all<@T>(0.0f); " for k in range(chains))
    total = " + ".join(f"s{k}" for k in range(chains))
    shift = "" if v["chunk"] == "no maximum" else " - top"
    add = "".join(f"s{k} = s{k} + exp_<@T>(load<@T>(p + (r + {k}) * inner + @j){shift}); " for k in range(chains))
    more = f"s0 = s0 + exp_<@T>(load<@T>(p + r * inner + @j){shift});"
    walk = f"long r = r0; for (; r + {chains} <= r1; r += {chains}) {{ {add}}} for (; r < r1; ++r) {{ {more} }} "
    if v["chunk"] == "no maximum":
        return f"{sums}const long r0 = 0, r1 = middle; {walk}store<@T>(o + @j, (@T)(log_<@T>({total})));"
    step = "middle" if v["chunk"] == "all" else str(v["chunk"])
    rescale = "" if v["chunk"] == "all" else f"if (r0 > 0) {{ @T e = exp_<@T>(was - top); {_scaled(chains)}}} "
    return (
        f"{sums}@T top = all<@T>(LOWEST); for (long r0 = 0; r0 < middle; r0 += {step}) {{ "
        f"const long r1 = least(r0 + {step}, middle); @T was = top; (void)was; "
        f"for (long r = r0; r < r1; ++r) top = most<@T>(top, load<@T>(p + r * inner + @j)); "
        f"{rescale}{walk}}} store<@T>(o + @j, (@T)(top + log_<@T>({total})));"
    )


def _scaled(chains: int) -> str:
    return "".join(f"s{k} = s{k} * e; " for k in range(chains))


def _in_buffers(v: Mapping[str, Value]) -> str:
    """Row after row over a panel of columns, with maximum and sum of each column in small buffers."""

    def walk(body: str) -> str:
        return covered(str(v["vector"]), int(v["steps"]), str(v["tail"]), "n", body)

    clear = walk("store<@T>(top + @j, all<@T>(LOWEST)); store<@T>(sum + @j, all<@T>(0.0f));")
    shift = "" if v["chunk"] == "no maximum" else " - load<@T>(top + @j)"
    chains = int(v["chains"])

    def added(rows: int) -> str:
        terms = "".join(f" + exp_<@T>(load<@T>(p + (r + {k}) * inner + @j){shift})" for k in range(rows))
        return walk(f"store<@T>(sum + @j, (@T)(load<@T>(sum + @j){terms}));")

    adds = f"long r = r0;\nfor (; r + {chains} <= r1; r += {chains}) {{\n{added(chains)}}}\n"
    adds += f"for (; r < r1; ++r) {{\n{added(1)}}}\n" if chains > 1 else ""
    if v["chunk"] == "no maximum":
        end = walk("store<@T>(o + @j, (@T)(log_<@T>(load<@T>(sum + @j))));")
        return f"{clear}{{ const long r0 = 0, r1 = middle;\n{adds}}}\n{end}"
    step = "middle" if v["chunk"] == "all" else str(v["chunk"])
    before = "" if v["chunk"] == "all" else walk("store<@T>(was + @j, load<@T>(top + @j));")
    largest = walk("store<@T>(top + @j, most<@T>(load<@T>(top + @j), load<@T>(p + r * inner + @j)));")
    rescale = walk("store<@T>(sum + @j, (@T)(load<@T>(sum + @j) * exp_<@T>(load<@T>(was + @j) - load<@T>(top + @j))));")
    again = "" if v["chunk"] == "all" else f"if (r0 > 0) {{\n{rescale}}}\n"
    end = walk("store<@T>(o + @j, (@T)(load<@T>(top + @j) + log_<@T>(load<@T>(sum + @j))));")
    return f"""\
{clear}for (long r0 = 0; r0 < middle; r0 += {step}) {{
const long r1 = least(r0 + {step}, middle);
{before}for (long r = r0; r < r1; ++r) {{
{largest}}}
{again}{adds}}}
{end}"""


def _render(v: Mapping[str, Value]) -> Kernel:
    panel = int(v["panel"])
    place = f"""\
const long n = least({panel}, inner - c);
const float* RESTRICT p = (const float*)in[0] + b * middle * inner + c;
float* RESTRICT o = (float*)out[0] + b * inner + c;
"""
    if v["state"] == "registers":
        work = place + covered(str(v["vector"]), int(v["steps"]), str(v["tail"]), "n", _in_registers(v))
    else:
        buffers = f"float top[{panel}] ALIGNED, sum[{panel}] ALIGNED, was[{panel}] ALIGNED; (void)top; (void)was;\n"
        work = place + buffers + _in_buffers(v)
    threads = str(v["threads"])
    if v["order"] == "batch outside":
        loops = parallel_for(threads, "b", "batch", f"for (long c = 0; c < inner; c += {panel}) {{\n{work}}}\n")
    else:
        over = parallel_for(threads, "b", "batch", work)
        loops = f"for (long c = 0; c < inner; c += {panel}) {{\n{over}}}\n"
    helpers = "#define ALIGNED __attribute__((aligned(64)))\n" + arithmetic(exp=str(v["exp"]), log=str(v["log"]))
    body = f"const long batch = dim[0], middle = dim[1], inner = dim[2];\n{loops}"
    return Kernel(kernel_file(helpers, body), flags_of(v))


SPACE = DesignSpace(
    "reduce_middle",
    (
        Dimension(
            "chunk", "algorithm", ("no maximum", "1", "4", "16", "64", "all"), "rows that share a maximum", ordered=True
        ),
        Dimension("state", "fusion", ("buffers", "registers"), "where maximum and sum of a column live"),
        Dimension("order", "loops", ("batch outside", "panels outside"), "outermost loop"),
        Dimension("panel", "tiling", (16, 64, 256, 1024, 4096), "columns of a panel", ordered=True),
        Dimension("chains", "vector", (1, 2, 4), "rows added in one go", ordered=True),
        Dimension("vector", "vector", VECTORS, "style of the loop over columns"),
        Dimension("steps", "vector", (1, 2), "vectors in flight", ordered=True),
        Dimension("tail", "vector", ("scalar", "simd", "none"), "what becomes of columns that fill no vector"),
        Dimension("exp", "math", EXP[:-1], "implementation of exp"),
        Dimension("log", "math", ("libm", "poly7", "poly5"), "implementation of log"),
        Dimension("threads", "threads", THREADS, "schedule of the batch"),
        *COMPILER_DIMENSIONS,
    ),
    _render,
    {
        "chunk": "all",
        "state": "registers",
        "order": "batch outside",
        "panel": 4096,
        "chains": 1,
        "vector": "plain",
        "steps": 1,
        "tail": "scalar",
        "exp": "libm",
        "log": "libm",
        "threads": "serial",
        **COMPILER_NAIVE,
    },
)
