"""The compiler dimensions that all spaces share. `-march=native -fopenmp` are the backend's own and always on.

Flags apply to compiling only: a shared object *linked* with -ffast-math would switch denormals off for the whole
process that loads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench_engine.tasks.design import Dimension, Value

_MATH: dict[str, tuple[str, ...]] = {
    "strict": (),
    "no-errno": ("-fno-math-errno", "-fno-trapping-math"),
    "associative": ("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math"),
    "fast": ("-ffast-math",),
}
_WIDTH: dict[str, tuple[str, ...]] = {
    "default": (),
    "256": ("-mprefer-vector-width=256",),
    "512": ("-mprefer-vector-width=512",),
}
_LOOPS: dict[str, tuple[str, ...]] = {
    "default": (),
    "unroll": ("-funroll-loops",),
    "no-vectorize": ("-fno-tree-vectorize",),
}

COMPILER_DIMENSIONS: tuple[Dimension, ...] = (
    Dimension("opt", "compiler", ("-O1", "-O2", "-O3"), "optimisation level", ordered=True),
    Dimension("math_flags", "compiler", tuple(_MATH), "how freely the compiler may rewrite floating point"),
    Dimension("vector_width", "compiler", tuple(_WIDTH), "preferred width of compiler-made vectors, bits"),
    Dimension("loop_flags", "compiler", tuple(_LOOPS), "unrolling and auto-vectorisation by the compiler"),
    Dimension("contract", "compiler", ("fast", "off"), "whether a*b+c may become one fused multiply-add"),
)

COMPILER_NAIVE: dict[str, Value] = {
    "opt": "-O2",
    "math_flags": "strict",
    "vector_width": "default",
    "loop_flags": "default",
    "contract": "fast",
}


def flags_of(values: Mapping[str, Value]) -> tuple[str, ...]:
    """The flags that the compiler dimensions of a point stand for."""
    contract = () if values["contract"] == "fast" else ("-ffp-contract=off",)
    return (
        str(values["opt"]),
        *_MATH[str(values["math_flags"])],
        *_WIDTH[str(values["vector_width"])],
        *_LOOPS[str(values["loop_flags"])],
        *contract,
    )
