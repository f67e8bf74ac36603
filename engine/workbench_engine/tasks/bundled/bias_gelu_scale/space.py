"""Design space of bias + GELU + scale: which form of GELU, how much is fused, which axis goes outside."""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.cxx import (
    COMPILER_DIMENSIONS,
    COMPILER_NAIVE,
    TAILS,
    THREADS,
    VECTORS,
    arithmetic,
    flags_of,
    kernel_file,
    lanes_of,
    map_pass,
    parallel_for,
)
from workbench_engine.tasks.cxx.arithmetic import normal_cdf_function
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel, Value

_DIMENSIONS = (
    Dimension(
        "gelu",
        "algorithm",
        ("erf", "cdf", "erfc_side", "tanh"),
        "erf: x (1 + erf(x / sqrt 2)) / 2; cdf: x Phi(x) by its own fit; erfc_side: the positive side from the "
        "negative one; tanh: the usual approximation, 1e-3 off",
    ),
    Dimension(
        "fusion",
        "fusion",
        ("fused", "bias_first", "scale_last", "chain"),
        "one pass; or the bias, the scale or both as passes of their own over the tile",
    ),
    Dimension("exp", "math", ("libm", "poly6", "poly5", "poly5_flush"), "exp inside erf and tanh"),
    Dimension("erf", "math", ("libm", "split", "erfcx", "erfcx7"), "implementation of erf or Phi"),
    Dimension(
        "order", "loops", ("rows", "columns"), "rows outside, or column tiles outside (bias and scale stay near)"
    ),
    Dimension("column_tile", "tiling", (64, 256, 1024, 65536), "columns of a tile", ordered=True),
    Dimension("row_tile", "tiling", (1, 2, 4, 16), "rows of a tile", ordered=True),
    Dimension("vector", "vector", VECTORS, "vector style"),
    Dimension("steps", "loops", (1, 2, 4), "vectors per iteration", ordered=True),
    Dimension("tail", "loops", TAILS, "what explicit vectors do with the end of a row"),
    Dimension("store", "memory", ("plain", "stream"), "cached or streaming stores of the result"),
    Dimension("threads", "threads", THREADS, "OpenMP schedule over the outer tiles"),
    *COMPILER_DIMENSIONS,
)

_NAIVE: dict[str, Value] = {
    "gelu": "erf",
    "fusion": "chain",
    "exp": "libm",
    "erf": "libm",
    "order": "rows",
    "column_tile": 65536,
    "row_tile": 1,
    "vector": "plain",
    "steps": 1,
    "tail": "scalar",
    "store": "plain",
    "threads": "serial",
    **COMPILER_NAIVE,
}

_TANH = """\
template <class T> INLINE T gelu_(T x) {
  T t = x * (x * x * 0.044715f + 1.0f) * 0.797884561f;
  T e = exp_<T>(t * 2.0f);
  return x - x / (e + 1.0f);
}
"""
_ERF = "template <class T> INLINE T gelu_(T x) { return x * 0.5f * (erf_<T>(x * 0.707106781f) + 1.0f); }\n"
_CDF = "template <class T> INLINE T gelu_(T x) { return x * cdf_<T>(x); }\n"
_SIDE = """\
template <class T> INLINE T gelu_(T x) {
  T below = x < 0.0f ? x : -x;
  T y = below * cdf_<T>(below);
  return x < 0.0f ? y : x + y;
}
"""


def _gelu(form: str, exp: str, erf: str) -> str:
    if form == "tanh":
        return arithmetic(exp=exp) + _TANH
    if form == "erf":
        return arithmetic(exp=exp, erf=erf) + _ERF
    return arithmetic(exp=exp) + normal_cdf_function(erf) + (_CDF if form == "cdf" else _SIDE)


def _render(v: Mapping[str, Value]) -> Kernel:
    lanes, fusion, store = lanes_of(v["vector"], v["steps"], v["tail"]), str(v["fusion"]), str(v["store"])
    biased = "load<@T>(x + @j) + load<@T>(b + @j)"
    own_bias, own_scale = fusion in ("bias_first", "chain"), fusion in ("scale_last", "chain")
    code = map_pass(lanes, "width", "", biased, "y") if own_bias else ""
    argument = "load<@T>(y + @j)" if own_bias else biased
    value = f"gelu_<@T>({argument})"
    if own_scale:
        code += map_pass(lanes, "width", "", value, "y")
        code += map_pass(lanes, "width", "", "load<@T>(y + @j) * load<@T>(w + @j)", "y", store)
    else:
        code += map_pass(lanes, "width", "", f"{value} * load<@T>(w + @j)", "y", store)
    rows, columns = int(v["row_tile"]), int(v["column_tile"])
    tile = f"""\
const long width = least({columns}, n - left), end = least(top + {rows}, rows);
const float* RESTRICT b = B + left; const float* RESTRICT w = W + left;
for (long i = top; i < end; ++i) {{
const float* RESTRICT x = X + i * n + left; float* RESTRICT y = Y + i * n + left;
{code}}}
"""
    threads = str(v["threads"])
    if v["order"] == "rows":
        inner = f"for (long left = 0; left < n; left += {columns}) {{\n{tile}}}\n"
        loop = parallel_for(threads, "top", "rows", inner, str(rows))
    else:
        inner = f"for (long top = 0; top < rows; top += {rows}) {{\n{tile}}}\n"
        loop = parallel_for(threads, "left", "n", inner, str(columns))
    head = (
        "const float* X = (const float*)in[0]; const float* B = (const float*)in[1];\n"
        "const float* W = (const float*)in[2]; float* Y = (float*)out[0];\nconst long rows = dim[0], n = dim[1];\n"
    )
    return Kernel(kernel_file(_gelu(str(v["gelu"]), str(v["exp"]), str(v["erf"])), head + loop), flags_of(v))


SPACE = DesignSpace("bias_gelu_scale", _DIMENSIONS, _render, _NAIVE)
