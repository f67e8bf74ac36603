"""Design space of `tall_skinny_gram`: A^T A for many narrow A.

Lanes may run across the k columns (outer products of rows, in registers or through memory) or down the rows (dot
products of columns, after a transposition). The result is symmetric; the width of the timed shape may be compiled in.
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

_GUARDED = """\
// A vector of which the first `n` lanes count. It may read past them, but never past the end of the input.
template <class T> INLINE T load_some(const float* p, long n, const float* end) {
  if (p + (int)Ints<T>::lanes <= end) return load<T>(p);
  float t[Ints<T>::lanes] = {};
  for (long i = 0; i < n; ++i) t[i] = p[i];
  return load<T>(t);
}
"""
_COPIED = """\
template <class T> INLINE T load_some(const float* p, long n, const float*) {
  if (n >= (int)Ints<T>::lanes) return load<T>(p);
  float t[Ints<T>::lanes] = {};
  for (long i = 0; i < n; ++i) t[i] = p[i];
  return load<T>(t);
}
"""
_STORE = """\
// v - 0 is v exactly, so no addition is left of it (0 + v is not v where v is -0).
template <class T> INLINE T splat(float v) { return v - T{}; }
template <class T> INLINE void store_some(float* p, T v, long n) {
  if (n >= (int)Ints<T>::lanes) { store<T>(p, v); return; }
  float t[Ints<T>::lanes];
  store<T>(t, v);
  for (long i = 0; i < n; ++i) p[i] = t[i];
}
template <> inline __attribute__((always_inline)) void store_some<float>(float* p, float v, long) { *p = v; }
"""


def _mirror(v: Mapping[str, Value]) -> str:
    if v["symmetry"] == "ignored":
        return ""
    return "for (long i = 1; i < k; ++i) for (long j = 0; j < i; ++j) g[i * k + j] = g[j * k + i];\n"


def _dots(v: Mapping[str, Value], lanes: Lanes) -> str:
    """One dot product of two columns for each entry."""
    start = "0" if v["symmetry"] == "ignored" else "i"
    if v["algorithm"] == "column dots":
        inner = """\
float s = 0.0f;
for (long r = 0; r < rows; ++r) s += x[r * k + i] * x[r * k + j];
g[i * k + j] = s;
"""
        return f"for (long i = 0; i < k; ++i) for (long j = {start}; j < k; ++j) {{\n{inner}}}\n{_mirror(v)}"
    product = sweep(lanes, "rows", "@{s} = @{s} + load<@T>(p + @j) * load<@T>(q + @j);", [Carry("s")], "r")
    return f"""\
for (long r = 0; r < rows; ++r) for (long i = 0; i < k; ++i) t[i * rows + r] = x[r * k + i];
for (long i = 0; i < k; ++i) for (long j = {start}; j < k; ++j) {{
const float* p = t + i * rows; const float* q = t + j * rows;
{product}g[i * k + j] = s;
}}
{_mirror(v)}"""


def _outer(v: Mapping[str, Value], lanes: Lanes) -> str:
    """Row after row, its outer product with itself is added to the matrix in memory."""
    rows = int(v["rows_at_once"])
    start, count = ("0", "k") if v["symmetry"] == "ignored" else ("i", "k - i")

    def added(number: int) -> str:
        factors = "".join(f"const float f{m} = x[(r + {m}) * k + i]; " for m in range(number))
        terms = "".join(f" + f{m} * load<@T>(x + (r + {m}) * k + {start} + @j)" for m in range(number))
        body = f"store<@T>(o + @j, (@T)(load<@T>(o + @j){terms}));"
        walk = sweep(lanes, count, body)
        return f"for (long i = 0; i < k; ++i) {{\n{factors}float* o = g + i * k + {start};\n{walk}}}\n"

    rest = f"for (; r < rows; ++r) {{\n{added(1)}}}\n" if rows > 1 else ""
    return f"""\
for (long i = 0; i < k * k; ++i) g[i] = 0.0f;
long r = 0;
for (; r + {rows} <= rows; r += {rows}) {{
{added(rows)}}}
{rest}{_mirror(v)}"""


def _tiles(v: Mapping[str, Value], lanes: Lanes) -> str:
    """Tiles of the matrix in registers: `tile_i` rows times `tile_j` vectors, summed down all rows of A."""
    height, across, unroll = int(v["tile_i"]), int(v["tile_j"]), int(v["rows_at_once"])
    kind, width = lanes.type, lanes.width
    tile = width * across
    packed = v["load"] == "packed"
    stride, base = ("wide", "t") if packed else ("k", "x")

    def row(index: str) -> str:
        """One row's contribution; a tile that hangs over reads a row entry that exists and throws the result away."""
        if packed:
            reads = [f"load<{kind}>(t + ({index}) * wide + j0 + {b * width})" for b in range(across)]
        elif width == 1:
            reads = [f"x[({index}) * k + least(j0 + {b}, k - 1)]" for b in range(across)]
        else:
            places = [f"j0 + {b * width}" for b in range(across)]
            reads = [f"load_some<{kind}>(x + ({index}) * k + {at}, k - ({at}), end)" for at in places]
        loads = "".join(f"const {kind} v{b} = {read};\n" for b, read in enumerate(reads))
        adds = "".join(
            f"{{ const {kind} u = splat<{kind}>({base}[({index}) * {stride} + least(i0 + {a}, k - 1)]); "
            + " ".join(f"s{a}_{b} = s{a}_{b} + u * v{b};" for b in range(across))
            + " }\n"
            for a in range(height)
        )
        return f"{{\n{loads}{adds}}}\n"

    zeros = "".join(f"{kind} s{a}_{b} = all<{kind}>(0.0f);\n" for a in range(height) for b in range(across))
    put = "".join(
        f"if (i0 + {a} < k && j0 + {b * width} < k) "
        f"store_some<{kind}>(g + (i0 + {a}) * k + j0 + {b * width}, s{a}_{b}, k - j0 - {b * width});\n"
        for a in range(height)
        for b in range(across)
    )
    skip = "" if v["symmetry"] == "ignored" else f"if (j0 + {tile} <= i0) continue;\n"
    pack = (
        "for (long r = 0; r < rows; ++r) {\n"
        "for (long j = 0; j < k; ++j) t[r * wide + j] = x[r * k + j];\n"
        "for (long j = k; j < wide; ++j) t[r * wide + j] = 0.0f;\n}\n"
        if packed
        else ""
    )
    together = "".join(row(f"r + {m}") for m in range(unroll))
    rest = f"for (; r < rows; ++r) {row('r')}" if unroll > 1 else ""
    return f"""\
{pack}for (long i0 = 0; i0 < k; i0 += {height}) for (long j0 = 0; j0 < k; j0 += {tile}) {{
{skip}{zeros}long r = 0;
for (; r + {unroll} <= rows; r += {unroll}) {{
{together}}}
{rest}{put}}}
{_mirror(v)}"""


def _render(v: Mapping[str, Value]) -> Kernel:
    style = str(v["vector"])
    lanes = Lanes(style, int(v["steps"]))
    if v["algorithm"] in ("column dots", "transposed dots"):
        work = _dots(v, lanes)
    elif v["algorithm"] == "outer products":
        work = _outer(v, lanes)
    else:
        work = _tiles(v, lanes)
    one = f"""\
template <int K> INLINE void gram(const float* RESTRICT x, float* RESTRICT g, float* RESTRICT t, long rows, long any,
const float* end) {{
const long k = K > 0 ? K : any;
const long wide = (k + 31) / 32 * 32;
(void)wide; (void)end; (void)t;
{work}}}
"""
    call = "(x, g, t, rows, k, end);"
    if v["width"] == "at run time":
        calls = f"gram<0>{call}\n"
    elif v["width"] == "12 or run time":
        calls = f"if (k == 12) gram<12>{call} else gram<0>{call}\n"
    else:
        calls = f"if (k == 12) gram<12>{call}\n"
    each = f"""\
const float* x = (const float*)in[0] + b * rows * k;
float* g = (float*)out[0] + b * k * k;
float* t = (float*)__builtin_alloca_with_align((unsigned long)rows * ((k + 31) / 32 * 32) * sizeof(float), 512);
{calls}"""
    # alloca inside the loop would grow the stack: the body is a function of its own.
    body = f"""\
const long batch = dim[0], rows = dim[1], k = dim[2];
{parallel_for(str(v["threads"]), "b", "batch", "one(in, out, b, batch, rows, k);")}"""
    function = f"""\
static __attribute__((noinline)) void one(const void* const* in, void* const* out, long b, long batch, long rows,
long k) {{
const float* end = (const float*)in[0] + batch * rows * k;
{each}}}
"""
    loads = _GUARDED if v["load"] == "guarded" else _COPIED
    return Kernel(kernel_file(loads + _STORE + one + function, body), flags_of(v))


SPACE = DesignSpace(
    "tall_skinny_gram",
    (
        Dimension(
            "algorithm",
            "algorithm",
            ("column dots", "transposed dots", "outer products", "register tiles"),
            "what the lanes run along, and where sums live",
        ),
        Dimension("symmetry", "algorithm", ("ignored", "mirrored"), "both triangles computed, or one and its mirror"),
        Dimension("width", "loops", ("at run time", "12 or run time", "12 only"), "when the width k is known"),
        Dimension("tile_i", "tiling", (1, 2, 3, 4, 6, 12), "rows of a register tile", ordered=True),
        Dimension("tile_j", "tiling", (1, 2), "vectors of a register tile", ordered=True),
        Dimension("rows_at_once", "loops", (1, 2, 4), "rows of A in one go", ordered=True),
        Dimension("load", "memory", ("copied", "guarded", "packed"), "how a row that fills no vector is read"),
        Dimension("vector", "vector", VECTORS, "style of the innermost loop"),
        Dimension("steps", "vector", (1, 2, 4), "vectors in flight", ordered=True),
        Dimension("threads", "threads", THREADS, "schedule of the batch"),
        *COMPILER_DIMENSIONS,
    ),
    _render,
    {
        "algorithm": "column dots",
        "symmetry": "ignored",
        "width": "at run time",
        "tile_i": 1,
        "tile_j": 1,
        "rows_at_once": 1,
        "load": "copied",
        "vector": "plain",
        "steps": 1,
        "threads": "serial",
        **COMPILER_NAIVE,
    },
)
