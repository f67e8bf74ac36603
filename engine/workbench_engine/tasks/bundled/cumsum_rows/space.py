"""Design space of `cumsum_rows`: break the chain of dependent additions.

One row is a chain as long as the row (4 cycles a step). Independent chains come from several rows at once, from a scan
inside the vector registers, or from blocks that are summed first and offset afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.cxx import COMPILER_DIMENSIONS, COMPILER_NAIVE, THREADS, flags_of, kernel_file, parallel_for
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel, Value

_TYPES = """\
typedef float v4f __attribute__((vector_size(16)));
typedef double v4d __attribute__((vector_size(32)));
typedef double v8d __attribute__((vector_size(64)));
typedef double v16d __attribute__((vector_size(128)));
"""


def _steps_of_scan(width: int, wide: bool) -> str:
    """Inclusive prefix sum of the vector `v` of `width` lanes in log2(width) shuffles."""
    index = f"Index{width}{'d' if wide else 'f'}"
    lines = []
    shift = 1
    while shift < width:
        lanes = ", ".join(str(width + k - shift) if k >= shift else str(k) for k in range(width))
        lines.append(f"v = v + __builtin_shuffle(zero, v, ({index}){{{lanes}}});")
        shift *= 2
    return "\n".join(lines) + "\n"


def _scalar_row(kind: str, unroll: int) -> str:
    return f"""\
{kind} s = 0;
#pragma GCC unroll {unroll}
for (long j = 0; j < cols; ++j) {{ s += x[j]; o[j] = (float)s; }}
"""


def _vector_row(v: Mapping[str, Value], kind: str) -> str:
    width = int(v["width"])
    wide = kind == "double"
    vector = f"v{width}{'d' if wide else 'f'}"
    index = f"Index{width}{'d' if wide else 'f'}"
    integer = "long long" if wide else "int"
    size = width * (8 if wide else 4)
    read = f"v{width}f f; __builtin_memcpy(&f, x + j, {width * 4});\n"
    convert = f"{vector} v = __builtin_convertvector(f, {vector});\n" if wide else f"{vector} v = f;\n"
    back = f"v{width}f r = __builtin_convertvector(v, v{width}f);\n" if wide else f"{vector} r = v;\n"
    write = (
        "stream(o + j, r);" if v["store"] == "stream" and width >= 8 else f"__builtin_memcpy(o + j, &r, {width * 4});"
    )
    hint = f"__builtin_prefetch(x + j + {int(v['prefetch']) // 4});\n" if v["prefetch"] else ""
    # The carry either waits for the whole scan of its vector, or takes a shorter way through a plain sum of lanes.
    if v["carry"] == "last lane":
        carry = f"v = v + s;\n{back}{write}\ns = v[{width - 1}];\n"
    else:
        carry = f"const {kind} t = v[{width - 1}];\nv = v + s;\ns = s + t;\n{back}{write}\n"
    tail = "" if v["tail"] == "none" else "for (; j < cols; ++j) { s += x[j]; o[j] = (float)s; }\n"
    return f"""\
typedef {integer} {index} __attribute__((vector_size({size})));
const {vector} zero = {{}};
{kind} s = 0;
long j = 0;
#pragma GCC unroll {v["unroll"]}
for (; j + {width} <= cols; j += {width}) {{
{hint}{read}{convert}{_steps_of_scan(width, wide)}{carry}}}
{tail}"""


def _blocked_row(v: Mapping[str, Value], kind: str) -> str:
    """Segments walked side by side for their totals, then again with their offsets."""
    parts = int(v["width"])
    last = f"s[{parts} - 1]"
    rest = f"for (long j = {parts} * part; j < cols; ++j) {{ {last} += x[j]; o[j] = (float){last}; }}"
    return f"""\
const long part = cols / {parts};
{kind} total[{parts}] = {{}};
for (long j = 0; j < part; ++j)
#pragma GCC unroll {parts}
for (int k = 0; k < {parts}; ++k) total[k] += x[k * part + j];
{kind} s[{parts}];
s[0] = 0;
for (int k = 1; k < {parts}; ++k) s[k] = s[k - 1] + total[k - 1];
for (long j = 0; j < part; ++j)
#pragma GCC unroll {parts}
for (int k = 0; k < {parts}; ++k) {{ s[k] += x[k * part + j]; o[k * part + j] = (float)s[k]; }}
{"" if v["tail"] == "none" else rest}
"""


def _offset_row(v: Mapping[str, Value], kind: str) -> str:
    """A scan of each short block by itself, then one vectorised addition of what came before it."""
    block = int(v["block"])
    return f"""\
{kind} base = 0;
for (long c = 0; c < cols; c += {block}) {{
const long n = least({block}, cols - c);
{kind} t[{block}];
{kind} s = 0;
for (long j = 0; j < n; ++j) {{ s += x[c + j]; t[j] = s; }}
#pragma omp simd
for (long j = 0; j < n; ++j) o[c + j] = (float)(t[j] + base);
base += s;
}}
"""


def _side_by_side(v: Mapping[str, Value], kind: str) -> str:
    """Several rows at once, one chain each; by blocks of columns so that the rows stay in cache."""
    rows, block = int(v["rows_at_once"]), int(v["block"])
    lonely = f"""\
for (long r = i; r < rows; ++r) {{
const float* x = x0 + r * cols; float* o = o0 + r * cols;
{_scalar_row(kind, 1)}}}
"""
    walk = f"""\
#pragma GCC unroll {v["unroll"]}
for (long j = c; j < e; ++j)
#pragma GCC unroll {rows}
for (int k = 0; k < {rows}; ++k) {{ s[k] += x[k * cols + j]; o[k * cols + j] = (float)s[k]; }}
"""
    if v["gather"] == "transposed tile":
        width = 8
        walk = f"""\
long j = c;
for (; j + {width} <= e; j += {width}) {{
float t[{width}][{rows}];
for (int k = 0; k < {rows}; ++k) for (int q = 0; q < {width}; ++q) t[q][k] = x[k * cols + j + q];
for (int q = 0; q < {width}; ++q)
#pragma omp simd
for (int k = 0; k < {rows}; ++k) {{ s[k] += t[q][k]; t[q][k] = (float)s[k]; }}
for (int k = 0; k < {rows}; ++k) for (int q = 0; q < {width}; ++q) o[k * cols + j + q] = t[q][k];
}}
for (; j < e; ++j) for (int k = 0; k < {rows}; ++k) {{ s[k] += x[k * cols + j]; o[k * cols + j] = (float)s[k]; }}
"""
    return f"""\
if (i + {rows} <= rows) {{
const float* x = x0 + i * cols; float* o = o0 + i * cols;
{kind} s[{rows}] = {{}};
for (long c = 0; c < cols; c += {block}) {{
const long e = least(c + {block}, cols);
{walk}}}
}} else {{
{lonely}}}
"""


def _render(v: Mapping[str, Value]) -> Kernel:
    kind = str(v["accumulator"])
    threads = str(v["threads"])
    if v["algorithm"] == "rows side by side":
        loops = parallel_for(threads, "i", "rows", _side_by_side(v, kind), step=str(v["rows_at_once"]))
    else:
        if v["algorithm"] == "chain":
            row = _scalar_row(kind, int(v["unroll"]))
        elif v["algorithm"] == "vector scan":
            row = _vector_row(v, kind)
        elif v["algorithm"] == "segments":
            row = _blocked_row(v, kind)
        else:
            row = _offset_row(v, kind)
        place = "const float* RESTRICT x = x0 + i * cols; float* RESTRICT o = o0 + i * cols;\n"
        loops = parallel_for(threads, "i", "rows", place + row)
    body = f"""\
const long rows = dim[0], cols = dim[1];
const float* RESTRICT x0 = (const float*)in[0];
float* RESTRICT o0 = (float*)out[0];
{loops}"""
    return Kernel(kernel_file(_TYPES, body), flags_of(v))


SPACE = DesignSpace(
    "cumsum_rows",
    (
        Dimension(
            "algorithm",
            "algorithm",
            ("chain", "rows side by side", "vector scan", "segments", "offset blocks"),
            "where independent additions come from",
        ),
        Dimension("accumulator", "math", ("double", "float"), "type of the running sum"),
        Dimension("rows_at_once", "loops", (2, 4, 8, 16), "rows walked side by side", ordered=True),
        Dimension("gather", "loops", ("direct", "transposed tile"), "how columns of several rows are read"),
        Dimension("block", "tiling", (16, 64, 256, 1024), "columns of a block", ordered=True),
        Dimension("width", "vector", (4, 8, 16), "lanes of a vector scan, or segments of a row", ordered=True),
        Dimension("carry", "vector", ("last lane", "total apart"), "what the next vector waits for"),
        Dimension("unroll", "vector", (1, 2, 4), "unrolling of the inner loop", ordered=True),
        Dimension("tail", "vector", ("scalar", "none"), "what becomes of the columns that fill no vector"),
        Dimension("store", "memory", ("plain", "stream"), "through the cache or past it"),
        Dimension("prefetch", "memory", (0, 512, 2048), "bytes to prefetch ahead", ordered=True),
        Dimension("threads", "threads", THREADS, "schedule of the rows"),
        *COMPILER_DIMENSIONS,
    ),
    _render,
    {
        "algorithm": "chain",
        "accumulator": "double",
        "rows_at_once": 2,
        "gather": "direct",
        "block": 1024,
        "width": 4,
        "carry": "last lane",
        "unroll": 1,
        "tail": "scalar",
        "store": "plain",
        "prefetch": 0,
        "threads": "serial",
        **COMPILER_NAIVE,
    },
)
