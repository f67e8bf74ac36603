"""Design space of `swish_chain`: how many passes, over which tiles, with which exp and which division.

Eager torch writes four intermediates; a fused kernel reads two arrays, writes one and is bound by exp.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.cxx import (
    COMPILER_DIMENSIONS,
    COMPILER_NAIVE,
    THREADS,
    VECTORS,
    arithmetic,
    flags_of,
    kernel_file,
    parallel_for,
)
from workbench_engine.tasks.cxx.chunked import TAILS, chunked
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel, Value

_RECIPROCAL = {
    "divide": "template <class T> INLINE T over_(T a, T b) { return a / b; }\n",
    # One Newton step on the hardware's 12 to 14 bits gives about 23 bits; a residual step on the quotient the rest.
    "newton": """\
template <class T> INLINE T over_(T a, T b) { return a / b; }
#if defined(__AVX__)
template <> inline __attribute__((always_inline)) v8f over_<v8f>(v8f a, v8f b) {
  v8f r = __builtin_ia32_rcpps256(b);
  r = r * (2.0f - b * r);
  v8f q = a * r;
  q = q + r * (a - b * q);
  return b > 1e30f ? a / b : q;
}
#endif
#if defined(__AVX512F__)
template <> inline __attribute__((always_inline)) v16f over_<v16f>(v16f a, v16f b) {
  v16f r = __builtin_ia32_rcp14ps512_mask(b, v16f{}, (unsigned short)-1);
  r = r * (2.0f - b * r);
  v16f q = a * r;
  q = q + r * (a - b * q);
  return b > 1e30f ? a / b : q;
}
#endif
""",
}

_CLAMP = "y = y * load<@T>(s + @j); y = y < -0.25f ? all<@T>(-0.25f) : y; y = y > 1.0f ? all<@T>(1.0f) : y;"
_ADD = "y = y + load<@T>(r + @j);"


def _render(v: Mapping[str, Value]) -> Kernel:
    def walk(prologue: str, value: str, to: str, count: str, final: bool) -> str:
        ahead = int(v["prefetch"]) // 4 if final or v["fusion"] != "four passes" else 0
        hint = f"__builtin_prefetch(x + @j + {ahead}); __builtin_prefetch(r + @j + {ahead});" if ahead else ""
        store = str(v["store"]) if final else "plain"
        return chunked(str(v["vector"]), int(v["steps"]), str(v["tail"]), count, hint + prologue, value, to, store)

    swish = "@T x_ = load<@T>(x + @j); @T y = over_<@T>(x_, 1.0f + exp_<@T>(-x_));"
    if v["fusion"] == "one pass":
        chain = walk(swish + _CLAMP + _ADD, "y", "o", "n", True)
    elif v["fusion"] == "two passes":
        chain = walk(swish, "y", "o", "n", False)
        chain += walk("@T y = load<@T>(o + @j);" + _CLAMP + _ADD, "y", "o", "n", True)
    elif v["fusion"] == "exp apart":
        chain = walk("@T y = exp_<@T>(-load<@T>(x + @j));", "y", "o", "n", False)
        chain += walk(
            "@T x_ = load<@T>(x + @j); @T y = over_<@T>(x_, 1.0f + load<@T>(o + @j));" + _CLAMP + _ADD,
            "y",
            "o",
            "n",
            True,
        )
    else:
        chain = walk(swish.replace("x_, 1.0f", "all<@T>(1.0f), 1.0f"), "y", "o", "n", False)
        chain += walk("@T y = load<@T>(o + @j) * load<@T>(x + @j);", "y", "o", "n", False)
        chain += walk("@T y = load<@T>(o + @j);" + _CLAMP, "y", "o", "n", False)
        chain += walk("@T y = load<@T>(o + @j);" + _ADD, "y", "o", "n", True)

    panel = int(v["panel"])
    place = """\
const float* RESTRICT x = (const float*)in[0] + i * cols + c;
const float* RESTRICT r = (const float*)in[1] + i * cols + c;
const float* RESTRICT s = (const float*)in[2] + c;
float* RESTRICT o = (float*)out[0] + i * cols + c;
"""
    threads = str(v["threads"])
    if panel == 0:
        loops = parallel_for(threads, "i", "rows", f"const long c = 0, n = cols;\n{place}{chain}")
    elif v["order"] == "row by row":
        inner = (
            f"for (long c = 0; c < cols; c += {panel}) {{\nconst long n = least({panel}, cols - c);\n{place}{chain}}}\n"
        )
        loops = parallel_for(threads, "i", "rows", inner)
    else:
        inner = parallel_for(threads, "i", "rows", place + chain)
        loops = f"for (long c = 0; c < cols; c += {panel}) {{\nconst long n = least({panel}, cols - c);\n{inner}}}\n"
    body = f"const long rows = dim[0], cols = dim[1];\n{loops}"
    return Kernel(kernel_file(arithmetic(exp=str(v["exp"])) + _RECIPROCAL[str(v["division"])], body), flags_of(v))


SPACE = DesignSpace(
    "swish_chain",
    (
        Dimension("fusion", "fusion", ("one pass", "exp apart", "two passes", "four passes"), "passes over the data"),
        Dimension("order", "loops", ("row by row", "panel by panel"), "which loop is outside"),
        Dimension("panel", "tiling", (0, 64, 256, 1024), "columns of a panel; 0: whole rows", ordered=True),
        Dimension("vector", "vector", VECTORS, "style of the innermost loop"),
        Dimension("steps", "vector", (1, 2, 4), "vectors in flight", ordered=True),
        Dimension("tail", "vector", TAILS, "what becomes of the columns that fill no vector"),
        Dimension("exp", "math", ("libm", "poly6", "poly5", "poly5_flush", "poly4"), "implementation of exp"),
        Dimension("division", "math", ("divide", "newton"), "a true division or a refined reciprocal"),
        Dimension("store", "memory", ("plain", "stream"), "through the cache or past it"),
        Dimension("prefetch", "memory", (0, 256, 1024), "bytes to prefetch ahead", ordered=True),
        Dimension("threads", "threads", THREADS, "schedule of the rows"),
        *COMPILER_DIMENSIONS,
    ),
    _render,
    {
        "fusion": "four passes",
        "order": "row by row",
        "panel": 0,
        "vector": "plain",
        "steps": 1,
        "tail": "scalar",
        "exp": "libm",
        "division": "divide",
        "store": "plain",
        "prefetch": 0,
        "threads": "serial",
        **COMPILER_NAIVE,
    },
)
