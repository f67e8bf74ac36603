"""Faults for Python modules, found on the syntax tree of `forward`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from workbench.benching.mutating.edits import Edit, Fault

OPERATORS: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.MatMult: "*"}
SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.MatMult: "@",
    ast.FloorDiv: "//",
}
ROUNDED = ("bfloat16()", "half()")
OTHER_METHOD = {
    "amax": "amin",
    "mean": "sum",
    "sum": "mean",
    "rsqrt": "sqrt",
    "sqrt": "abs",
    "maximum": "minimum",
    "minimum": "maximum",
    "exp": "expm1",
    "log": "log1p",
}


def edits(text: str) -> list[Edit]:
    """All faults known for a module, in the order of the file. `text` must parse."""
    offsets = _line_offsets(text)
    forward = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == "forward")
    found: dict[tuple[int, int, str], Edit] = {}
    for node in ast.walk(forward):
        for fault, place, new in _faults(node, text):
            start, end = _span(place, offsets)
            old = text.encode()[start:end].decode()
            if old != new:
                found.setdefault((start, end, new), Edit(fault, start, end, new, f"{_short(old)} → {_short(new)}"))
    return sorted(found.values(), key=lambda e: (e.start, e.end, e.new))


def _line_offsets(text: str) -> list[int]:
    offsets = [0]
    for line in text.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    return offsets


def _span(node: ast.expr | ast.stmt, offsets: list[int]) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return offsets[node.lineno - 1] + node.col_offset, offsets[node.end_lineno - 1] + node.end_col_offset


def _short(text: str, width: int = 48) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


Found = Iterator[tuple[Fault, ast.expr | ast.stmt, str]]


def _faults(node: ast.AST, text: str) -> Found:
    if isinstance(node, ast.BinOp):
        yield from _binary(node, text)
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, ast.Compare):
        left, right = _source(node.left, text), _source(node.comparators[0], text)
        yield "wrong comparison", node, f"{left} <= {right}"
        yield "wrong comparison", node, f"{left} >= {right}"
    elif isinstance(node, ast.Call):
        yield from _call(node, text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "wrong operator", node, f"({_source(node.operand, text)})"
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        yield from _rounded(node.value, text)
        if re.search(rf"\b{node.targets[0].id}\b", _source(node.value, text)):
            yield "deleted statement", node, "pass"
    elif isinstance(node, ast.Return) and node.value is not None:
        yield from _rounded(node.value, text)
        value = _source(node.value, text)
        yield "dropped row or column", node, f"y = {value}; y.view(-1)[-1:] = 0.0; return y"
        yield "early end", node, f"y = ({value}).contiguous(); y.view(-1)[y.numel() - y.numel() // 8:] = 0.0; return y"


def _source(node: ast.expr, text: str) -> str:
    found = ast.get_source_segment(text, node)
    assert found is not None
    return found


def _binary(node: ast.BinOp, text: str) -> Found:
    a, b = _source(node.left, text), _source(node.right, text)
    sign = SIGNS.get(type(node.op), "")
    yield "dropped term", node, f"({a})"
    if isinstance(node.op, (ast.Add, ast.Mult)):
        yield "dropped term", node, f"({b})"
    elif sign:
        yield "swapped operands", node, f"({b} {sign} {a})"
    if type(node.op) in OPERATORS:
        yield "wrong operator", node, f"({a} {OPERATORS[type(node.op)]} {b})"


def _constant(node: ast.Constant) -> Found:
    value = node.value
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield "off by one", node, str(value + 1)
        yield "off by one", node, str(value - 1)
    elif isinstance(value, float):
        for factor in (1.001, 1.01, 10.0):
            yield "wrong constant", node, repr(value * factor) if value else "0.5"
        if 0.0 < value < 1e-3:
            yield "dropped term", node, "0.0"
    elif isinstance(value, str) and "->" in value:
        given, made = value.split("->")
        if len(made) > 1:
            yield "swapped indices", node, repr(f"{given}->{made[:-2]}{made[-1]}{made[-2]}")


def _call(node: ast.Call, text: str) -> Found:
    for keyword in node.keywords:
        if keyword.arg == "dim" and isinstance(keyword.value, ast.Constant | ast.UnaryOp):
            yield "swapped indices", keyword.value, "0"
    if isinstance(node.func, ast.Attribute):
        name, start = node.func.attr, _source(node.func.value, text)
        if name in OTHER_METHOD:
            yield "wrong operator", node.func, f"{start}.{OTHER_METHOD[name]}"
        if name == "erf":
            yield "fast approximation", node.func, "(lambda v: torch.tanh(1.1283792 * v * (1.0 + 0.0894 * v * v)))"
        if name == "exp":
            yield "fast approximation", node, f"(1.0 + ({start}) / 4096.0).clamp(min=0.0).pow(4096.0)"
        if name in ("transpose", "unsqueeze"):
            yield "swapped indices", node, start


def _rounded(node: ast.expr, text: str) -> Found:
    if isinstance(node, ast.Subscript | ast.Tuple | ast.Constant) or "shape" in _source(node, text):
        return
    for rounded in ROUNDED:
        yield "precision", node, f"({_source(node, text)}).{rounded}.float()"
