"""The made-up design space of the synthetic session, and C++ that reads like its points."""

from __future__ import annotations

from workbench_sessions.events import Value

DIMENSIONS: dict[str, list[Value]] = {
    "rewrite": ["two-pass", "online", "fused", "blocked"],
    "tile": [16, 32, 64, 128, 256, 512],
    "unroll": [1, 2, 4, 8, 16],
    "vector": [4, 8, 16],
    "exp": ["libm", "poly5", "poly7"],
    "threads": [1, 2],
    "streaming": [False, True],
    "layout": ["rows", "columns"],
    "flags": ["-O2", "-O3", "-O3 -ffast-math"],
}
GROUPS = {
    "rewrite": "algorithm",
    "tile": "loops",
    "unroll": "loops",
    "vector": "simd",
    "exp": "math",
    "threads": "parallel",
    "streaming": "memory",
    "layout": "memory",
    "flags": "compiler",
}

REFERENCE = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4096, 1024)]


def get_init_inputs() -> list[object]:
    return []
"""

_HEAD = """// {name}: {note}
#include <cmath>
#include <cstddef>
#include <omp.h>

static inline float fast_exp(float v) {{
{exp}
}}

extern "C" void kernel(const float* __restrict x, float* __restrict y, long rows, long columns) {{
    #pragma omp parallel for schedule(static) num_threads({threads})
    for (long i = 0; i < rows; ++i) {{
        const float* in = x + i * columns;
        float* out = y + i * columns;
"""
_EXP: dict[Value, str] = {
    "libm": "    return std::exp(v);",
    "poly5": "    const float k = std::floor(v * 1.44269504f);\n    const float r = v - k * 0.69314718f;\n"
    "    const float p = 1.0f + r * (1.0f + r * (0.5f + r * (0.16666667f + r * (0.04166667f + r * 0.00833333f))));\n"
    "    return std::ldexp(p, static_cast<int>(k));",
    "poly7": "    const float k = std::floor(v * 1.44269504f);\n    const float r = v - k * 0.69314718f;\n"
    "    float p = 1.98412698e-4f;\n    p = p * r + 1.38888889e-3f;\n    p = p * r + 8.33333333e-3f;\n"
    "    p = p * r + 4.16666667e-2f;\n    p = p * r + 1.66666667e-1f;\n    p = p * r + 0.5f;\n    p = p * r + 1.0f;\n"
    "    p = p * r + 1.0f;\n    return std::ldexp(p, static_cast<int>(k));",
}
_TWO_PASS = """        float top = -INFINITY;
        #pragma omp simd reduction(max:top) simdlen({vector})
        for (long j = 0; j < columns; ++j) top = in[j] > top ? in[j] : top;
        float sum = 0.0f;
        for (long start = 0; start < columns; start += {tile}) {{
            const long stop = start + {tile} < columns ? start + {tile} : columns;
            #pragma GCC unroll {unroll}
            for (long j = start; j < stop; ++j) {{
                const float e = fast_exp(in[j] - top);
                out[j] = e;
                sum += e;
            }}
        }}
"""
_ONLINE = """        float top = -INFINITY, sum = 0.0f;
        for (long start = 0; start < columns; start += {tile}) {{
            const long stop = start + {tile} < columns ? start + {tile} : columns;
            float local = top;
            #pragma omp simd reduction(max:local) simdlen({vector})
            for (long j = start; j < stop; ++j) local = in[j] > local ? in[j] : local;
            sum *= fast_exp(top - local);
            #pragma GCC unroll {unroll}
            for (long j = start; j < stop; ++j) sum += fast_exp(in[j] - local);
            top = local;
        }}
        #pragma omp simd simdlen({vector})
        for (long j = 0; j < columns; ++j) out[j] = fast_exp(in[j] - top);
"""
_TAIL = """        const float scale = 1.0f / sum;
        #pragma omp simd simdlen({vector})
        for (long j = 0; j < columns; ++j) out[j] {store};
    }}
}}
"""


def render(name: str, point: dict[str, Value], note: str) -> str:
    """C++ text of a point: reads like a kernel, is never built."""
    body = _TWO_PASS if point["rewrite"] in ("two-pass", "fused") else _ONLINE
    tail = (
        _TAIL
        if not point["streaming"]
        else _TAIL.replace("out[j] {store}", "__builtin_nontemporal_store(out[j] * scale, out + j)")
    )
    return (_HEAD + body + tail).format(name=name, note=note, store="*= scale", **{**point, "exp": _EXP[point["exp"]]})
