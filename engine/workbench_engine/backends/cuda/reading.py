"""From the TOML of a candidate's comment to a `LaunchSpec`: every key known, every expression parsed. Pure.

workspace = ["4 * rows * 32", { bytes = "4", zero = true }]

[[launch]]
kernel = "softmax_rows<float, 4>"
grid = ["ceil_div(rows, 8)"]
block = [32, 8]
shared = "4 * cols"
arguments = ["in[0]", "out[0]", "workspace[0]", "rows", "int64(rows * cols)", "float32(1.0 / cols)"]
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from workbench_engine.backends.cuda.expressions import Expression, ExpressionError, Number, parse
from workbench_engine.backends.cuda.launch import (
    KERNEL,
    MOST_ARGUMENTS,
    MOST_LAUNCHES,
    SCALARS,
    Argument,
    Launch,
    LaunchSpec,
    Pointer,
    Scalar,
    TensorMapArgument,
    Workspace,
)
from workbench_engine.backends.cuda.tensor_map import MAPPED, SWIZZLES, TensorMap

_TOP = ("workspace", "launch")
_LAUNCH = ("kernel", "grid", "block", "shared", "arguments", "cluster", "cooperative", "when")
_MAP = ("tensor_map", "dtype", "shape", "box", "strides", "swizzle")
_POINTER = re.compile(r"\s*(in|out|workspace)\s*\[\s*(\d{1,3})\s*\]\s*")
_SCALAR = re.compile(rf"\s*({'|'.join(SCALARS)})\s*\((.*)\)\s*", re.DOTALL)


class Misread(Exception):
    """What is wrong and what to do. `launch` counts from 1 (0: above the launches); `key` is where it stands."""

    def __init__(self, said: str, launch: int = 0, key: str = "") -> None:
        self.launch = launch
        self.key = key
        where = f"launch {launch}, {key}: " if launch and key else f"launch {launch}: " if launch else ""
        super().__init__(f"{where or (f'{key}: ' if key else '')}{said}")


def read_spec(table: Mapping[str, Any]) -> LaunchSpec:
    """Raises Misread."""
    _only(table, _TOP, 0)
    launches = table.get("launch", [])
    if not isinstance(launches, list) or not all(isinstance(one, dict) for one in launches):
        raise Misread("write each launch as a table [[launch]]", key="launch")
    if not launches:
        raise Misread("no launch is declared; add a table [[launch]]")
    if len(launches) > MOST_LAUNCHES:
        raise Misread(f"{len(launches)} launches; at most {MOST_LAUNCHES} are made a call")
    rooms = table.get("workspace", [])
    if not isinstance(rooms, list) or len(rooms) > 64:
        raise Misread('write a list of at most 64 sizes in bytes, as ["4 * rows"]', key="workspace")
    return LaunchSpec(
        tuple(_launch(one, number) for number, one in enumerate(launches, 1)),
        tuple(_workspace(room) for room in rooms),
    )


def _workspace(room: Any) -> Workspace:
    if not isinstance(room, dict):
        return Workspace(_expression(room, 0, "workspace"))
    if unknown := sorted(set(room) - {"bytes", "zero"}):
        raise Misread(f"unknown key {unknown[0]!r}; known: bytes, zero", key="workspace")
    if "bytes" not in room:
        raise Misread("the size is missing; write { bytes = … }", key="workspace")
    return Workspace(_expression(room["bytes"], 0, "workspace"), _switch(room, "zero", 0))


def _launch(table: Mapping[str, Any], number: int) -> Launch:
    _only(table, _LAUNCH, number)
    for key in ("kernel", "grid", "block", "arguments"):
        if key not in table:
            raise Misread(f"{key} is missing", number)
    kernel = table["kernel"]
    if not isinstance(kernel, str) or len(kernel) > 300 or not KERNEL.fullmatch(kernel):
        raise Misread(f"{kernel!r} is no name of a kernel; write softmax or softmax<float, 4>", number, "kernel")
    arguments = table["arguments"]
    if not isinstance(arguments, list) or len(arguments) > MOST_ARGUMENTS:
        raise Misread(f"write a list of at most {MOST_ARGUMENTS} arguments", number, "arguments")
    return Launch(
        kernel=" ".join(kernel.split()),
        grid=_extents(table["grid"], number, "grid"),
        block=_extents(table["block"], number, "block"),
        arguments=tuple(_argument(one, number) for one in arguments),
        shared=_expression(table["shared"], number, "shared") if "shared" in table else Number(0),
        cluster=_extents(table["cluster"], number, "cluster") if "cluster" in table else (),
        cooperative=_switch(table, "cooperative", number),
        when=_expression(table["when"], number, "when") if "when" in table else None,
    )


def _argument(given: Any, number: int) -> Argument:
    key = "arguments"
    if isinstance(given, dict):
        return _tensor_map(given, number)
    if isinstance(given, float):
        raise Misread(f"{given!r} has no type; write float32({given!r})", number, key)
    if isinstance(given, str):
        if match := _POINTER.fullmatch(given):
            place = match[1]
            return Pointer("in" if place == "in" else "out" if place == "out" else "workspace", int(match[2]))
        if match := _SCALAR.fullmatch(given):
            return Scalar(match[1], _expression(match[2], number, key))
        if re.match(r"\s*\w+\s*\[", given):
            raise Misread(f"{given!r} is no pointer; write in[0], out[0] or workspace[0]", number, key)
    return Scalar("int32", _expression(given, number, key))


def _tensor_map(given: Mapping[str, Any], number: int) -> TensorMapArgument:
    key = "arguments"
    if unknown := sorted(set(given) - set(_MAP)):
        raise Misread(f"unknown key {unknown[0]!r} of a tensor map; known: {', '.join(_MAP)}", number, key)
    match = _POINTER.fullmatch(str(given.get("tensor_map", "")))
    if match is None:
        raise Misread('a tensor map names its tensor: { tensor_map = "in[0]", … }', number, key)
    dtype, swizzle = given.get("dtype"), given.get("swizzle", "none")
    if dtype not in MAPPED:
        raise Misread(f"dtype {dtype!r} of a tensor map; known: {', '.join(MAPPED)}", number, key)
    if swizzle not in SWIZZLES:
        raise Misread(f"swizzle {swizzle!r}; known: {', '.join(SWIZZLES)}", number, key)
    shape, box = (_list(given.get(name, []), number, key, 5) for name in ("shape", "box"))
    strides = _list(given.get("strides", []), number, key, 4, least=0)
    if len(box) != len(shape) or (strides and len(strides) != len(shape) - 1):
        raise Misread("box has as many extents as shape, strides one fewer (all but the innermost)", number, key)
    place = match[1]
    of = Pointer("in" if place == "in" else "out" if place == "out" else "workspace", int(match[2]))
    return TensorMapArgument(of, TensorMap(str(dtype), shape, box, strides, str(swizzle)))


def _extents(given: Any, number: int, key: str) -> tuple[Expression, ...]:
    return _list(given if isinstance(given, list) else [given], number, key, 3)


def _list(given: Any, number: int, key: str, most: int, least: int = 1) -> tuple[Expression, ...]:
    if not isinstance(given, list) or not least <= len(given) <= most:
        raise Misread(f"write a list of {least} to {most} expressions", number, key)
    return tuple(_expression(one, number, key) for one in given)


def _expression(given: Any, number: int, key: str) -> Expression:
    try:
        return parse(given)
    except ExpressionError as error:
        raise Misread(str(error), number, key) from None


def _switch(table: Mapping[str, Any], key: str, number: int) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise Misread("write true or false", number, key)
    return value


def _only(table: Mapping[str, Any], known: Iterable[str], number: int) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.6)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise Misread(f"unknown key {key!r}; {hint}", number, key)
