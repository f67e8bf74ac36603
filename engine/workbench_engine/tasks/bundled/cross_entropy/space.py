"""Design space of cross-entropy: what is subtracted before exp, how often the logits are read, how losses add up."""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.cxx import (
    COMPILER_DIMENSIONS,
    COMPILER_NAIVE,
    EXP,
    LOG,
    TAILS,
    THREADS,
    VECTORS,
    Carry,
    Lanes,
    arithmetic,
    flags_of,
    kernel_file,
    lanes_of,
    sweep,
)
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel, Value

_DIMENSIONS = (
    Dimension(
        "shift",
        "algorithm",
        ("maximum", "online", "log_softmax", "block_online", "target"),
        "maximum: a pass for it, then exp; online: column blocks rescale the sum; log_softmax: all log-probabilities "
        "are written to a buffer first; block_online: as online, but over a block of rows at a time; target: subtracts "
        "the target's logit in a single pass (overflows when another class is far above it)",
    ),
    Dimension("exp", "math", EXP, "implementation of exp"),
    Dimension("log", "math", LOG, "implementation of log"),
    Dimension(
        "total",
        "algorithm",
        ("float", "double", "per_row"),
        "how the rows' losses add up: one float, one double, or an array of losses summed last",
    ),
    Dimension("max_vector", "vector", VECTORS, "vector style of the maximum"),
    Dimension("max_steps", "loops", (1, 2, 4, 8), "independent maxima in flight", ordered=True),
    Dimension("exp_vector", "vector", VECTORS, "vector style of the sum of exp"),
    Dimension("exp_steps", "loops", (1, 2, 4, 8), "independent sums in flight", ordered=True),
    Dimension("tail", "loops", TAILS, "what explicit vectors of exp do with the end of a row"),
    Dimension("column_block", "tiling", (64, 256, 1024), "columns per step of the online forms", ordered=True),
    Dimension("row_block", "tiling", (1, 4, 16, 64), "rows per block of `block_online`", ordered=True),
    Dimension("threads", "threads", THREADS, "OpenMP schedule over rows"),
    *COMPILER_DIMENSIONS,
)

_NAIVE: dict[str, Value] = {
    "shift": "log_softmax",
    "exp": "libm",
    "log": "libm",
    "total": "float",
    "max_vector": "plain",
    "max_steps": 1,
    "exp_vector": "plain",
    "exp_steps": 1,
    "tail": "scalar",
    "column_block": 256,
    "row_block": 1,
    "threads": "serial",
    **COMPILER_NAIVE,
}

_TARGET = "const float at = x[target[i]];\n"


def _row(shift: str, maximum: Lanes, exponent: Lanes, block: int) -> str:
    """C++ that leaves the loss of row `i` (logits at `x`) in `loss`."""
    top = sweep(maximum, "n", "@{m} = most(@{m}, load<@T>(x + @j));", [Carry("m", "max")])
    total = sweep(exponent, "n", "@{s} += exp_<@T>(load<@T>(x + @j) - m);", [Carry("s")])
    if shift == "maximum":
        return f"{top}{total}{_TARGET}const float loss = m + log_<float>(s) - at;\n"
    if shift == "target":
        return f"{_TARGET}const float m = at;\n{total}const float loss = log_<float>(s);\n"
    if shift == "log_softmax":
        write = sweep(exponent, "n", "store<@T>(logp + i * n + @j, (@T)(load<@T>(x + @j) - z));")
        return f"{top}{total}const float z = m + log_<float>(s);\n{write}const float loss = -logp[i * n + target[i]];\n"
    return (
        f"float m = LOWEST, s = 0.0f;\nfor (long base = 0; base < n; base += {block}) {{\n"
        f"{_step(maximum, exponent, block)}}}\n{_TARGET}const float loss = m + log_<float>(s) - at;\n"
    )


def _step(maximum: Lanes, exponent: Lanes, block: int) -> str:
    """One block of columns of the online form: raises `m`, rescales and extends `s`."""
    block_max = sweep(maximum, "part", "@{t} = most(@{t}, load<@T>(x + base + @j));", [Carry("t", "max")])
    block_sum = sweep(exponent, "part", "@{u} += exp_<@T>(load<@T>(x + base + @j) - m);", [Carry("u")])
    return (
        f"const long part = least({block}, n - base);\n"
        f"{block_max}if (t > m) {{ s *= exp_<float>(m - t); m = t; }}\n{block_sum}s += u;\n"
    )


def _blocks(maximum: Lanes, exponent: Lanes, columns: int, rows: int, add: str) -> str:
    """The online form over tiles of rows and columns: one step of every row before the next columns."""
    return f"""\
const long end = least(top + {rows}, rows);
float ms[{rows}], ss[{rows}];
for (long i = top; i < end; ++i) {{ ms[i - top] = LOWEST; ss[i - top] = 0.0f; }}
for (long base = 0; base < n; base += {columns}) {{
for (long i = top; i < end; ++i) {{
const float* RESTRICT x = X + i * n;
float m = ms[i - top], s = ss[i - top];
{_step(maximum, exponent, columns)}ms[i - top] = m; ss[i - top] = s;
}}
}}
for (long i = top; i < end; ++i) {{
const float loss = ms[i - top] + log_<float>(ss[i - top]) - X[i * n + target[i]];
{add}
}}
"""


def _render(v: Mapping[str, Value]) -> Kernel:
    shift, total, threads, block = str(v["shift"]), str(v["total"]), str(v["threads"]), int(v["column_block"])
    maximum = lanes_of(v["max_vector"], v["max_steps"])
    exponent = lanes_of(v["exp_vector"], v["exp_steps"], v["tail"])
    add = "losses[i] = loss;" if total == "per_row" else "sum += loss;"
    if shift == "block_online":
        step = int(v["row_block"])
        loop = f"for (long top = 0; top < rows; top += {step}) {{\n{_blocks(maximum, exponent, block, step, add)}}}\n"
    else:
        row = f"const float* RESTRICT x = X + i * n;\n{_row(shift, maximum, exponent, block)}{add}\n"
        loop = f"for (long i = 0; i < rows; ++i) {{\n{row}}}\n"
    if threads != "serial":
        reduction = "" if total == "per_row" else " reduction(+:sum)"
        loop = f"#pragma omp parallel for schedule({threads}){reduction}\n{loop}"
    before = f"{'double' if total == 'double' else 'float'} sum = 0;\n"
    after = "out0[0] = (float)(sum / rows);\n"
    if total == "per_row":
        before += "float* losses = (float*)malloc(rows * sizeof(float));\n"
        after = f"for (long i = 0; i < rows; ++i) sum += losses[i];\n{after}free(losses);\n"
    if shift == "log_softmax":
        before += "float* logp = (float*)malloc(rows * n * sizeof(float));\n"
        after += "free(logp);\n"
    head = (
        "const float* X = (const float*)in[0]; const long long* target = (const long long*)in[1];\n"
        "float* out0 = (float*)out[0];\nconst long rows = dim[0], n = dim[1];\n"
    )
    helpers = 'extern "C" { void* malloc(unsigned long) noexcept; void free(void*) noexcept; }\n'
    helpers += arithmetic(exp=str(v["exp"]), log=str(v["log"]))
    return Kernel(kernel_file(helpers, head + before + loop + after), flags_of(v))


SPACE = DesignSpace("cross_entropy", _DIMENSIONS, _render, _NAIVE)
