"""Design space of `diag_matmul`: see that the product is a scaling of rows, then move the bytes well.

Dense variants do n times the work; what remains after the rewrite is bound by memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.cxx import (
    COMPILER_DIMENSIONS,
    COMPILER_NAIVE,
    THREADS,
    VECTORS,
    Lanes,
    flags_of,
    kernel_file,
    parallel_for,
    sweep,
)
from workbench_engine.tasks.cxx.chunked import TAILS, chunked
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel, Value

_OPEN = """\
const long n = dim[0], m = dim[1];
const float* RESTRICT a = (const float*)in[0];
const float* RESTRICT b = (const float*)in[1];
float* RESTRICT o = (float*)out[0];
"""
_DIAGONAL = {
    "materialised": """\
float* d = (float*)__builtin_calloc(n * n, sizeof(float));
for (long i = 0; i < n; ++i) d[i * n + i] = a[i];
""",
    "implied": "",
}
_CLOSE = {"materialised": "__builtin_free(d);\n", "implied": ""}


def _extent(v: Mapping[str, Value]) -> tuple[str, str]:
    """Range of k that row i looks at: everything, or the diagonal block that row i lies in."""
    if not str(v["algorithm"]).startswith("block"):
        return "0", "n"
    size = str(v["algorithm"]).removeprefix("blocks of ")
    return f"i / {size} * {size}", f"least(n, i / {size} * {size} + {size})"


def _dense(v: Mapping[str, Value], start: str, count: str) -> str:
    """Row i of the product by the sum over all k, columns `start` .. `start + count`."""
    entry = "d[i * n + k]" if v["diagonal"] == "materialised" else "(i == k ? a[i] : 0.0f)"
    lanes = Lanes(str(v["vector"]), int(v["steps"]))
    zero = sweep(lanes, count, "store<@T>(p + @j, all<@T>(0.0f));")
    add = sweep(lanes, count, "store<@T>(p + @j, load<@T>(p + @j) + f * load<@T>(q + @j));")
    skip = "if (f == 0.0f) continue;\n" if v["algorithm"] == "skip zeros" else ""
    first, last = _extent(v)
    return f"""\
float* RESTRICT p = o + i * m + {start};
{zero}for (long k = {first}; k < {last}; ++k) {{
const float f = {entry};
{skip}const float* RESTRICT q = b + k * m + {start};
{add}}}
"""


def _scale(v: Mapping[str, Value], start: str, count: str) -> str:
    ahead = int(v["prefetch"]) // 4
    hint = f"__builtin_prefetch(q + @j + {ahead});" if ahead else ""
    value = "load<@T>(q + @j) * f"
    pass_ = chunked(str(v["vector"]), int(v["steps"]), str(v["tail"]), count, hint, value, "p", str(v["store"]))
    return f"const float f = a[i];\nfloat* p = o + i * m + {start};\nconst float* q = b + i * m + {start};\n{pass_}"


def _columns(v: Mapping[str, Value]) -> str:
    """Down the columns, a strided walk: what one writes when the matrix is thought of by columns."""
    if v["algorithm"] == "scale rows":
        inner = "for (long i = 0; i < n; ++i) o[i * m + j] = a[i] * b[i * m + j];\n"
    else:
        entry = "d[i * n + k]" if v["diagonal"] == "materialised" else "(i == k ? a[i] : 0.0f)"
        first, last = _extent(v)
        skip = "if (f == 0.0f) continue; " if v["algorithm"] == "skip zeros" else ""
        inner = f"""\
for (long i = 0; i < n; ++i) {{
float s = 0.0f;
for (long k = {first}; k < {last}; ++k) {{ const float f = {entry}; {skip}s += f * b[k * m + j]; }}
o[i * m + j] = s;
}}
"""
    return parallel_for(str(v["threads"]), "j", "m", inner)


def _render(v: Mapping[str, Value]) -> Kernel:
    diagonal = "implied" if v["algorithm"] == "scale rows" else str(v["diagonal"])
    work = _scale if v["algorithm"] == "scale rows" else _dense
    threads, panel = str(v["threads"]), int(v["panel"])
    if v["order"] == "columns":
        loops = _columns(v)
    elif panel == 0:
        loops = parallel_for(threads, "i", "n", work(v, "0", "m"))
    elif v["order"] == "rows":
        inner = (
            f"for (long c = 0; c < m; c += {panel}) {{\nconst long w = least({panel}, m - c);\n{work(v, 'c', 'w')}}}\n"
        )
        loops = parallel_for(threads, "i", "n", inner)
    else:
        inner = parallel_for(threads, "i", "n", work(v, "c", "w"))
        loops = f"for (long c = 0; c < m; c += {panel}) {{\nconst long w = least({panel}, m - c);\n{inner}}}\n"
    return Kernel(kernel_file("", _OPEN + _DIAGONAL[diagonal] + loops + _CLOSE[diagonal]), flags_of(v))


SPACE = DesignSpace(
    "diag_matmul",
    (
        Dimension(
            "algorithm",
            "algorithm",
            ("dense", "skip zeros", "blocks of 64", "blocks of 8", "scale rows"),
            "what is multiplied",
        ),
        Dimension("diagonal", "algorithm", ("materialised", "implied"), "whether diag(a) exists in memory"),
        Dimension("order", "loops", ("columns", "rows", "panels"), "outermost loop"),
        Dimension("panel", "tiling", (0, 16, 64, 256), "columns of a panel; 0: whole rows", ordered=True),
        Dimension("vector", "vector", VECTORS, "style of the innermost loop"),
        Dimension("steps", "vector", (1, 2, 4), "vectors in flight", ordered=True),
        Dimension("tail", "vector", TAILS, "what becomes of the columns that fill no vector"),
        Dimension("store", "memory", ("plain", "stream"), "through the cache or past it"),
        Dimension("prefetch", "memory", (0, 256, 1024, 4096), "bytes to prefetch ahead", ordered=True),
        Dimension("threads", "threads", THREADS, "schedule of the outer loop"),
        *COMPILER_DIMENSIONS,
    ),
    _render,
    {
        "algorithm": "dense",
        "diagonal": "materialised",
        "order": "rows",
        "panel": 0,
        "vector": "plain",
        "steps": 1,
        "tail": "scalar",
        "store": "plain",
        "prefetch": 0,
        "threads": "serial",
        **COMPILER_NAIVE,
    },
)
