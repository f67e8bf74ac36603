"""Design space of short attention: how scores are formed, where scale and normalisation go, how queries are blocked."""

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
    arithmetic,
    flags_of,
    kernel_file,
    lanes_of,
    parallel_for,
    sweep,
)
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel, Value

_DIMENSIONS = (
    Dimension(
        "scores",
        "algorithm",
        ("dot", "outer"),
        "dot: every score is a dot product along the width; outer: keys are transposed once, scores of a query grow "
        "along the keys",
    ),
    Dimension(
        "shift",
        "algorithm",
        ("maximum", "none", "bound"),
        "maximum: of the row; none: exp of the raw scores (overflows for large inputs); bound: |q| |k|max, one norm a "
        "query (underflows for large inputs)",
    ),
    Dimension("normalise", "algorithm", ("scores", "output"), "divide the weights, or the weighted sum at the end"),
    Dimension("scale_at", "fusion", ("query", "scores"), "where 1/sqrt(width) is applied"),
    Dimension("exp", "math", EXP, "implementation of exp"),
    Dimension("query_block", "tiling", (1, 2, 4, 8), "queries whose scores share loads of the keys", ordered=True),
    Dimension("value_block", "tiling", (1, 2, 4, 8), "queries whose outputs share loads of the values", ordered=True),
    Dimension("score_vector", "vector", VECTORS, "vector style of the scores"),
    Dimension("score_steps", "loops", (1, 2, 4), "vectors of scores held in registers", ordered=True),
    Dimension("exp_vector", "vector", VECTORS, "vector style of the softmax"),
    Dimension("value_vector", "vector", VECTORS, "vector style of the weighted sum"),
    Dimension("value_steps", "loops", (1, 2, 4), "vectors of output held in registers", ordered=True),
    Dimension("tail", "loops", TAILS, "what explicit vectors of exp do with the end of a row"),
    Dimension("threads", "threads", THREADS, "OpenMP schedule over heads"),
    *COMPILER_DIMENSIONS,
)

_NAIVE: dict[str, Value] = {
    "scores": "dot",
    "shift": "maximum",
    "normalise": "scores",
    "scale_at": "scores",
    "exp": "libm",
    "query_block": 1,
    "value_block": 1,
    "score_vector": "plain",
    "score_steps": 1,
    "exp_vector": "plain",
    "value_vector": "plain",
    "value_steps": 1,
    "tail": "scalar",
    "threads": "serial",
    **COMPILER_NAIVE,
}

_ALLOCATION = 'extern "C" { void* malloc(unsigned long) noexcept; void free(void*) noexcept; }\n'


def _product(name: str, lanes: Lanes, rows: int) -> str:
    """A function `c[rows, n] = a[rows, depth] * b[depth, n]`: a block of rows shares every load of `b`.

    Vector styles hold rows x steps accumulators in registers; scalar styles add into `c` row by row.
    """
    head = (
        f"template <int R> static __attribute__((noinline)) void {name}(\n"
        "    const float* RESTRICT a, long lda, const float* RESTRICT b, long ldb, float* RESTRICT c, long ldc,\n"
        "    long depth, long n) {\n"
    )
    grow = sweep(Lanes(lanes.style, 1), "n", "cr[@j] += s * bp[@j];") if lanes.width == 1 else ""
    if lanes.width == 1:
        return f"""\
{head}for (int r = 0; r < R; ++r) for (long j = 0; j < n; ++j) c[r * ldc + j] = 0.0f;
for (long p = 0; p < depth; ++p) {{
const float* RESTRICT bp = b + p * ldb;
for (int r = 0; r < R; ++r) {{
const float s = a[r * lda + p]; float* RESTRICT cr = c + r * ldc;
{grow}}}
}}
}}
"""
    kind, width = lanes.type, lanes.width

    def tile(steps: int) -> str:
        return f"""\
for (; j + {width * steps} <= n; j += {width * steps}) {{
static_assert(R * {steps} < 32, "the tile does not fit the vector registers");
{kind} t[R][{steps}];
for (int r = 0; r < R; ++r) for (int u = 0; u < {steps}; ++u) t[r][u] = all<{kind}>(0.0f);
for (long p = 0; p < depth; ++p) {{
{kind} w[{steps}];
_Pragma("GCC unroll 8") for (int u = 0; u < {steps}; ++u) w[u] = load<{kind}>(b + p * ldb + j + u * {width});
_Pragma("GCC unroll 8") for (int r = 0; r < R; ++r) {{
const float s = a[r * lda + p];
_Pragma("GCC unroll 8") for (int u = 0; u < {steps}; ++u) t[r][u] += w[u] * s;
}}
}}
for (int r = 0; r < R; ++r) for (int u = 0; u < {steps}; ++u) store(c + r * ldc + j + u * {width}, t[r][u]);
}}
"""

    wide = f"if (R > 1) {{\n{tile(lanes.steps)}}}\n" if lanes.steps > 1 else ""
    return f"""\
{head}long j = 0;
{wide}{tile(1)}for (; j < n; ++j) for (int r = 0; r < R; ++r) {{
float s = 0.0f;
for (long p = 0; p < depth; ++p) s += a[r * lda + p] * b[p * ldb + j];
c[r * ldc + j] = s;
}}
}}
"""


def _dots(lanes: Lanes) -> str:
    """A function `c[R, n] = a[R, depth] * b[n, depth]^T` by dot products."""
    dot = sweep(lanes, "depth", "@{s} += load<@T>(x + @j) * load<@T>(y + @j);", [Carry("s")])
    return f"""\
template <int R> static __attribute__((noinline)) void scores_(
    const float* RESTRICT a, long lda, const float* RESTRICT b, long ldb, float* RESTRICT c, long ldc,
    long depth, long n) {{
for (long k = 0; k < n; ++k) for (int r = 0; r < R; ++r) {{
const float* RESTRICT x = a + r * lda; const float* RESTRICT y = b + k * ldb;
{dot}c[r * ldc + k] = s;
}}
}}
"""


def _softmax(v: Mapping[str, Value]) -> str:
    """C++ over the row `s` of raw scores: weights into `s`, their reciprocal sum into `inverse[q]`."""
    lanes = lanes_of(v["exp_vector"], 1, v["tail"])
    find = {
        "maximum": sweep(lanes_of(v["exp_vector"]), "T", "@{m} = most(@{m}, load<@T>(s + @j));", [Carry("m", "max")]),
        "none": "const float m = 0.0f;\n",
        "bound": "float qq = 0.0f; for (long p = 0; p < D; ++p) qq += query[q * D + p] * query[q * D + p];\n"
        "const float m = sqrtf(qq * longest);\n",
    }[str(v["shift"])]
    argument = "load<@T>(s + @j) - m"
    factor = "root" if v["scale_at"] == "scores" else ""
    if factor:
        argument = f"({argument}) * {factor}"
    total = sweep(lanes, "T", f"@T e = exp_<@T>({argument}); store<@T>(s + @j, e); @{{z}} += e;", [Carry("z")])
    divide = ""
    if v["normalise"] == "scores":
        divide = sweep(lanes, "T", "store<@T>(s + @j, (@T)(load<@T>(s + @j) * inverse[q]));")
    return f"{find}{total}inverse[q] = 1.0f / z;\n{divide}"


def _blocked(call: str, block: int) -> str:
    """`call` (with @R and @q) over all queries, `block` at a time, the rest one by one."""
    one = "for (; q < T; ++q) " + call.replace("@R", "1") + "\n"
    if block == 1:
        return f"{{ long q = 0; {one}}}\n"
    many = f"for (; q + {block} <= T; q += {block}) " + call.replace("@R", str(block)) + "\n"
    return f"{{ long q = 0; {many}{one}}}\n"


def _render(v: Mapping[str, Value]) -> Kernel:
    score = lanes_of(v["score_vector"], v["score_steps"])
    value = lanes_of(v["value_vector"], v["value_steps"])
    outer = v["scores"] == "outer"
    helpers = _ALLOCATION + arithmetic(exp=str(v["exp"]))
    helpers += _product("scores_", score, 1) if outer else _dots(score)
    helpers += _product("values_", value, 1)
    prepare = ""
    if v["scale_at"] == "query":
        prepare += "for (long j = 0; j < T * D; ++j) scaled[j] = Q[j] * root;\nconst float* query = scaled;\n"
    else:
        prepare += "const float* query = Q;\n"
    if outer:
        prepare += "for (long k = 0; k < T; ++k) for (long p = 0; p < D; ++p) turned[p * T + k] = K[k * D + p];\n"
    if v["shift"] == "bound":
        prepare += (
            "float longest = 0.0f;\nfor (long k = 0; k < T; ++k) { float kk = 0.0f;\n"
            "for (long p = 0; p < D; ++p) kk += K[k * D + p] * K[k * D + p];\nlongest = most(longest, kk); }\n"
        )
    keys = "turned, T" if outer else "K, D"
    form = _blocked(f"scores_<@R>(query + q * D, D, {keys}, S + q * T, T, D, T);", int(v["query_block"]))
    weigh = _blocked("values_<@R>(S + q * T, T, V, D, O + q * D, D, T, D);", int(v["value_block"]))
    finish = ""
    if v["normalise"] == "output":
        finish = "for (long q = 0; q < T; ++q) for (long p = 0; p < D; ++p) O[q * D + p] *= inverse[q];\n"
    body = f"""\
const float* RESTRICT Q = q_ + h * T * D; const float* RESTRICT K = k_ + h * T * D;
const float* RESTRICT V = v_ + h * T * D; float* RESTRICT O = o_ + h * T * D;
float* S = (float*)malloc((T * T + 2 * T * D + T) * sizeof(float));
float* scaled = S + T * T; float* turned = scaled + T * D; float* inverse = turned + T * D;
(void)scaled; (void)turned;
{prepare}{form}for (long q = 0; q < T; ++q) {{
float* s = S + q * T;
{_softmax(v)}}}
{weigh}{finish}free(S);
"""
    loop = parallel_for(str(v["threads"]), "h", "count", body)
    head = (
        "const float* q_ = (const float*)in[0]; const float* k_ = (const float*)in[1];\n"
        "const float* v_ = (const float*)in[2]; float* o_ = (float*)out[0];\n"
        "const long count = dim[0] * dim[1], T = dim[2], D = dim[3];\n"
        "const float root = 1.0f / sqrtf((float)D); (void)root;\n"
    )
    return Kernel(kernel_file(helpers, head + loop), flags_of(v))


SPACE = DesignSpace("attention_short", _DIMENSIONS, _render, _NAIVE)
