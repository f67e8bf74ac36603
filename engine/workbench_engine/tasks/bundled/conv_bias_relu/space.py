"""Design space of `conv_bias_relu`: a direct depthwise 3x3 convolution.

A stencil reads each input row three times; computing several output rows at once shares these reads. The edges are
branches for each tap, scalar columns beside a vector interior, or a padded copy of the plane that needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.cxx import COMPILER_DIMENSIONS, COMPILER_NAIVE, THREADS, VECTORS, flags_of, kernel_file
from workbench_engine.tasks.cxx.chunked import TAILS, chunked, covered
from workbench_engine.tasks.cxx.loops import parallel_for
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel, Value

_HELPERS = """\
template <class T> INLINE T positive(T v) { return v > 0.0f ? v : all<T>(0.0f); }
template <class T> INLINE T splat(float v) { return v - T{}; }
// One output, every tap checked against the edges.
INLINE float at_edge(const float* x, const float* w, float bias, long i, long j, long height, long width) {
  float s = bias;
  for (long di = -1; di <= 1; ++di) for (long dj = -1; dj <= 1; ++dj)
    if (i + di >= 0 && i + di < height && j + dj >= 0 && j + dj < width)
      s += x[(i + di) * width + j + dj] * w[(di + 1) * 3 + dj + 1];
  return s;
}
"""


def _checked(v: Mapping[str, Value]) -> str:
    relu = "" if v["relu"] == "own pass" else "s = positive(s);"
    return f"""\
for (long i = 0; i < height; ++i) for (long j = 0; j < width; ++j) {{
float s = at_edge(x, w, bias, i, j, height, width);
{relu}
o[i * width + j] = s;
}}
"""


def _taps(v: Mapping[str, Value]) -> str:
    """The output starts as the bias and collects one shifted row after the other."""
    style, steps, tail = str(v["vector"]), int(v["steps"]), str(v["tail"])
    start = covered(style, steps, tail, "width", "store<@T>(p + @j, splat<@T>(bias));")
    if v["taps"] == "one by one":
        add = "store<@T>(p + lo + @j, (@T)(load<@T>(p + lo + @j) + load<@T>(q + lo + @j) * w[di * 3 + dj]));"
        inner = f"""\
for (long dj = 0; dj < 3; ++dj) {{
const long lo = dj == 0 ? 1 : 0, hi = dj == 2 ? width - 1 : width;
const float* q = x + (i + di - 1) * width + dj - 1;
const long n = hi - lo;
{covered(style, steps, tail, "n", add)}}}
"""
    else:
        terms = " + ".join(f"load<@T>(q + @j + {dj}) * w[di * 3 + {dj}]" for dj in range(3))
        add = f"store<@T>(p + 1 + @j, (@T)(load<@T>(p + 1 + @j) + {terms}));"
        inner = f"""\
const float* q = x + (i + di - 1) * width;
const float* u = w + di * 3;
const long n = width - 2;
{covered(style, steps, tail, "n", add)}
p[0] += q[0] * u[1] + (width > 1 ? q[1] * u[2] : 0.0f);
if (width > 1) p[width - 1] += q[width - 2] * u[0] + q[width - 1] * u[1];
"""
    relu = "" if v["relu"] == "own pass" else covered(style, steps, tail, "width", _RELU_ROW)
    return f"""\
for (long i = 0; i < height; ++i) {{
float* RESTRICT p = o + i * width;
{start}for (long di = 0; di < 3; ++di) {{
if (i + di < 1 || i + di > height) continue;
{inner}}}
{relu}}}
"""


_RELU_ROW = "store<@T>(p + @j, positive<@T>(load<@T>(p + @j)));"


def _stencil(v: Mapping[str, Value]) -> str:
    """`rows` output rows at once over their `rows` + 2 input rows."""
    rows = int(v["rows_at_once"])
    style, steps, tail = str(v["vector"]), int(v["steps"]), str(v["tail"])
    padded = v["algorithm"] == "padded stencil"
    count, first = ("width", "0") if padded else ("width - 2", "1")
    weight = "k{}" if v["taps"] == "in registers" else "w[{}]"
    hoisted = "".join(f"const float k{t} = w[{t}];\n" for t in range(9)) if v["taps"] == "in registers" else ""

    def band(number: int) -> str:
        pointers = "".join(
            f"const float* q{r} = source + (i + {r}) * stride;\n"
            if padded
            else f"const float* q{r} = i + {r - 1} >= 0 && i + {r - 1} < height ? x + (i + {r - 1}) * width : none;\n"
            for r in range(number + 2)
        )
        starts = "".join(f"@T s{a} = splat<@T>(bias); " for a in range(number))
        reads = ""
        for r in range(number + 2):
            reads += "".join(f"const @T v{r}_{d} = load<@T>(q{r} + @j + {d}); " for d in range(3))
            for a in range(number):
                if 0 <= r - a <= 2:
                    reads += "".join(f"s{a} = s{a} + v{r}_{d} * {weight.format((r - a) * 3 + d)}; " for d in range(3))
        results = [f"s{a}" if v["relu"] == "own pass" else f"positive<@T>(s{a})" for a in range(number)]
        if number == 1:
            walk = chunked(style, steps, tail, count, starts + reads, results[0], f"(o + i * width + {first})", store)
        else:
            put = "stream({}, (@T){});" if store == "stream" else "store<@T>({}, {});"
            writes = " ".join(put.format(f"o + (i + {a}) * width + {first} + @j", results[a]) for a in range(number))
            walk = covered(style, steps, tail, count, starts + reads + writes)
        edges = ""
        if not padded:
            relu = "" if v["relu"] == "own pass" else "positive"
            edges = f"""\
for (long a = 0; a < {number}; ++a) {{
o[(i + a) * width] = {relu}(at_edge(x, w, bias, i + a, 0, height, width));
o[(i + a) * width + width - 1] = {relu}(at_edge(x, w, bias, i + a, width - 1, height, width));
}}
"""
        return f"{pointers}{walk}{edges}"

    store = str(v["store"])
    rest = f"for (; i < height; ++i) {{\n{band(1)}}}\n" if rows > 1 else ""
    prepare = (
        """\
const long stride = (width + 2 + 15) / 16 * 16;
float* source = (float*)__builtin_malloc((height + 2) * stride * sizeof(float));
for (long j = 0; j < width + 2; ++j) source[j] = source[(height + 1) * stride + j] = 0.0f;
for (long i = 0; i < height; ++i) {
float* t = source + (i + 1) * stride;
t[0] = t[width + 1] = 0.0f;
__builtin_memcpy(t + 1, x + i * width, width * sizeof(float));
}
"""
        if padded
        else "float* none = (float*)__builtin_calloc(width, sizeof(float));\n"
    )
    return f"""\
{hoisted}{prepare}long i = 0;
for (; i + {rows} <= height; i += {rows}) {{
{band(rows)}}}
{rest}__builtin_free({"source" if padded else "none"});
"""


def _render(v: Mapping[str, Value]) -> Kernel:
    if v["algorithm"] == "checked taps":
        work = _checked(v)
    elif v["algorithm"] == "tap rows":
        work = _taps(v)
    else:
        work = _stencil(v)
    if v["relu"] == "own pass":
        relu = covered(str(v["vector"]), int(v["steps"]), str(v["tail"]), "area", _RELU_ROW.replace("p +", "o +"))
        work += f"const long area = height * width;\n{relu}"
    plane = f"""\
const float* RESTRICT x = (const float*)in[0] + b * height * width;
const float* RESTRICT w = (const float*)in[1] + b % channels * 9;
const float bias = ((const float*)in[2])[b % channels];
float* RESTRICT o = (float*)out[0] + b * height * width;
{work}"""
    loops = parallel_for(str(v["threads"]), "b", "batch * channels", plane)
    body = f"const long batch = dim[0], channels = dim[1], height = dim[2], width = dim[3];\n{loops}"
    return Kernel(kernel_file(_HELPERS, body), flags_of(v))


SPACE = DesignSpace(
    "conv_bias_relu",
    (
        Dimension(
            "algorithm",
            "algorithm",
            ("checked taps", "tap rows", "split stencil", "padded stencil"),
            "how taps and edges are walked",
        ),
        Dimension("relu", "fusion", ("own pass", "fused"), "ReLU over the finished plane, or with the result at hand"),
        Dimension("taps", "loops", ("one by one", "in memory", "in registers"), "where the nine weights are kept"),
        Dimension("rows_at_once", "tiling", (1, 2, 3, 4), "output rows that share input rows", ordered=True),
        Dimension("vector", "vector", VECTORS, "style of the loop along a row"),
        Dimension("steps", "vector", (1, 2), "vectors in flight", ordered=True),
        Dimension("tail", "vector", TAILS, "what becomes of the columns that fill no vector"),
        Dimension("store", "memory", ("plain", "stream"), "through the cache or past it"),
        Dimension("threads", "threads", THREADS, "schedule of the planes"),
        *COMPILER_DIMENSIONS,
    ),
    _render,
    {
        "algorithm": "checked taps",
        "relu": "own pass",
        "taps": "one by one",
        "rows_at_once": 1,
        "vector": "plain",
        "steps": 1,
        "tail": "scalar",
        "store": "plain",
        "threads": "serial",
        **COMPILER_NAIVE,
    },
)
