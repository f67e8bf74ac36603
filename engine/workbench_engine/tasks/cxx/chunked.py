"""A map over one axis whose remainder (count modulo the vector width) is a choice of its own."""

from __future__ import annotations

from workbench_engine.tasks.cxx.loops import Lanes, map_pass, sweep

TAILS = ("scalar", "simd", "none")
"""scalar, simd: how the remainder is finished; none: it is left out, which only shapes that divide evenly forgive."""


def chunked(
    style: str, steps: int, tail: str, count: str, prologue: str, value: str, to: str, store: str = "plain"
) -> str:
    """`map_pass` with the remainder done as `tail` says. `@j` counts over the whole axis in both parts."""
    lanes = Lanes(style, steps, "scalar" if tail == "scalar" else "none")
    text = map_pass(lanes, count, prologue, value, to, store)
    if tail != "simd" or lanes.width == 1:
        return text
    start = f"({count}) / {lanes.width} * {lanes.width}"
    rest = map_pass(
        Lanes("simd"),
        f"({count}) - rest",
        prologue.replace("@j", "(rest + @j)"),
        value.replace("@j", "(rest + @j)"),
        f"({to} + rest)",
    )
    return f"{text}{{\nconst long rest = {start};\n{rest}}}\n"


def covered(style: str, steps: int, tail: str, count: str, body: str) -> str:
    """A sweep of `body` without carries, the remainder done as `tail` says (the same choice as in `chunked`)."""
    lanes = Lanes(style, steps, "scalar" if tail == "scalar" else "none")
    text = sweep(lanes, count, body)
    if tail != "simd" or lanes.width == 1:
        return text
    rest = sweep(Lanes("simd"), f"({count}) - rest", body.replace("@j", "(rest + @j)"))
    return f"{text}{{\nconst long rest = ({count}) / {lanes.width} * {lanes.width};\n{rest}}}\n"
