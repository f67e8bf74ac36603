"""Loops: a sweep over one axis in a chosen vector style, and rows over threads.

Bodies are C++ text with marks: `@T` the element type (float, v8f or v16f), `@j` the index, `@{s}` a carried value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

VECTORS = ("plain", "simd", "vec8", "vec16")
"""plain: what the compiler makes of a scalar loop; simd: under `#pragma omp simd`; vecN: explicit vectors."""
TAILS = ("scalar", "simd", "none")
_OMP = {"sum": "+", "max": "max"}
THREADS = ("serial", "static", "static,16", "dynamic,1", "dynamic,16", "guided,4")
"""OpenMP schedule of the outer loop; serial has no parallel region at all."""


class Lanes(Struct, frozen=True):
    """How a sweep runs. `steps`: independent accumulators and bodies in flight; `tail`: what becomes of n mod width."""

    style: str
    steps: int = 1
    tail: str = "scalar"
    """Explicit vectors only. "scalar" or "simd": such a loop finishes the axis; "none": nothing does, so it is wrong
    unless the width divides n."""

    @property
    def width(self) -> int:
        return int(self.style[3:]) if self.style.startswith("vec") else 1

    @property
    def type(self) -> str:
        return "float" if self.width == 1 else f"v{self.width}f"


def lanes_of(style: object, steps: object = 1, tail: object = "scalar") -> Lanes:
    """Lanes from the values of a design point."""
    return Lanes(str(style), int(str(steps)), str(tail))


class Carry(Struct, frozen=True):
    """A float that a sweep reduces into: declared and initialised by the sweep, a plain float after it."""

    name: str
    op: Literal["sum", "max"] = "sum"
    start: str = ""

    @property
    def initial(self) -> str:
        return self.start or ("0.0f" if self.op == "sum" else "LOWEST")

    def join(self, a: str, b: str) -> str:
        return f"{a} + {b}" if self.op == "sum" else f"most({a}, {b})"


def _fill(body: str, kind: str, index: str, names: dict[str, str]) -> str:
    text = re.sub(r"@\{(\w+)\}", lambda m: names.get(m.group(1), m.group(1)), body)
    return text.replace("@T", kind).replace("@j", f"({index})" if not index.isidentifier() else index)


def sweep(lanes: Lanes, count: str, body: str, carries: Sequence[Carry] = (), index: str = "j") -> str:
    """A loop of `index` over [0, count) with `body`; afterwards each carry is a float variable of its name."""
    return _wide(lanes, count, body, carries, index) if lanes.width > 1 else _narrow(lanes, count, body, carries, index)


def _enclose(inner: list[str], carries: Sequence[Carry], ends: dict[str, str]) -> str:
    """Carries live outside the block, the index and the partial values inside."""
    declared = "".join(f"float {c.name};\n" for c in carries)
    leave = "".join(f"{c.name} = {ends[c.name]};\n" for c in carries)
    body = "\n".join(inner)
    return f"{declared}{{\n{body}\n{leave}}}\n"


def _narrow(lanes: Lanes, count: str, body: str, carries: Sequence[Carry], index: str) -> str:
    # Several steps are several segments of the axis walked side by side: independent chains, one remainder.
    steps = lanes.steps
    names = [{c.name: f"{c.name}_{k}" for c in carries} for k in range(steps)]
    lines = [f"float {n[c.name]} = {c.initial};" for n in names for c in carries]

    def loop(start: str, end: str, which: list[dict[str, str]]) -> str:
        pragma = f"#pragma omp simd{_reductions(carries, which)}\n" if lanes.style == "simd" else ""
        places = [index if k == 0 else f"{index} + {k} * segment" for k in range(len(which))]
        bodies = " ".join(f"{{ {_fill(body, 'float', place, n)} }}" for place, n in zip(places, which, strict=True))
        return f"{pragma}for (long {index} = {start}; {index} < {end}; ++{index}) {{ {bodies} }}"

    if steps == 1:
        lines.append(loop("0", count, names))
    else:
        lines.append(f"const long segment = ({count}) / {steps};")
        lines.append(loop("0", "segment", names))
        lines.append(loop(f"{steps} * segment", count, names[:1]))
        lines += [
            f"{n[c.name]} = {c.join(n[c.name], names[k + 1][c.name])};" for c in carries for k, n in _folds(names)
        ]
    return _enclose(lines, carries, names[0])


def _reductions(carries: Sequence[Carry], names: list[dict[str, str]]) -> str:
    return "".join(f" reduction({_OMP[c.op]}:{', '.join(n[c.name] for n in names)})" for c in carries)


def _folds(names: list[dict[str, str]]) -> list[tuple[int, dict[str, str]]]:
    """Partial values folded from the last to the first."""
    return [(k, names[k]) for k in reversed(range(len(names) - 1))]


def _wide(lanes: Lanes, count: str, body: str, carries: Sequence[Carry], index: str) -> str:
    width, steps, kind = lanes.width, lanes.steps, lanes.type
    names = [{c.name: f"{c.name}_{k}" for c in carries} for k in range(steps)]
    whole = {c.name: f"{c.name}_all" for c in carries}
    lines = [f"{kind} {n[c.name]} = all<{kind}>({c.initial});" for n in names for c in carries]
    lines.append(f"long {index} = 0;")
    if steps > 1:
        places = [index if k == 0 else f"{index} + {k * width}" for k in range(steps)]
        bodies = " ".join(f"{{ {_fill(body, kind, place, n)} }}" for place, n in zip(places, names, strict=True))
        lines.append(f"for (; {index} + {width * steps} <= {count}; {index} += {width * steps}) {{ {bodies} }}")
    one = _fill(body, kind, index, names[0])
    lines.append(f"for (; {index} + {width} <= {count}; {index} += {width}) {{ {one} }}")
    lines += [f"{n[c.name]} = {c.join(n[c.name], names[k + 1][c.name])};" for c in carries for k, n in _folds(names)]
    lines += [f"float {whole[c.name]} = {c.op}_lanes({names[0][c.name]});" for c in carries]
    if lanes.tail != "none":
        rest = index if lanes.tail == "scalar" else f"{index}_rest"
        pragma = "" if lanes.tail == "scalar" else f"#pragma omp simd{_reductions(carries, [whole])}\n"
        start = "" if lanes.tail == "scalar" else f"long {rest} = {index}"
        lines.append(f"{pragma}for ({start}; {rest} < {count}; ++{rest}) {{ {_fill(body, 'float', rest, whole)} }}")
    return _enclose(lines, carries, whole)


def map_pass(lanes: Lanes, count: str, prologue: str, value: str, to: str, store: str = "plain") -> str:
    """A sweep that writes `value` to `to[j]`; `store` "plain" or "stream" (scalar styles stream by buffer)."""
    if store != "stream":
        return sweep(lanes, count, f"{prologue} store<@T>({to} + @j, {value});")
    if lanes.width > 1:
        return sweep(lanes, count, f"{prologue} stream({to} + @j, (@T)({value}));")
    block = sweep(lanes, "part", f"{prologue} buffer[@j - base] = {value};".replace("@j", "(base + @j)"))
    return f"""\
for (long base = 0; base < {count}; base += 512) {{
const long part = least(512, {count} - base);
float buffer[512] __attribute__((aligned(64)));
{block}stream_copy({to} + base, buffer, part);
}}
"""


def parallel_for(threads: str, variable: str, count: str, body: str, step: str = "1") -> str:
    """`body` for `variable` = 0, step, ... below `count`, over threads unless "serial". Ends with a store fence."""
    head = f"for (long {variable} = 0; {variable} < {count}; {variable} += {step}) {{\n{body}}}\n"
    if threads == "serial":
        return f"{head}fence();\n"
    return f"#pragma omp parallel\n{{\n#pragma omp for schedule({threads})\n{head}fence();\n}}\n"
