"""Sizes of a task in its source: module-level integers and tuples of integers, named and changed. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from msgspec import Struct

from workbench.auditing.constants import bindings, parse

LEAST = 16
"""A smaller number is no size worth cutting: a kernel's width, a stride, an axis, a count of layers."""
PART = re.compile(r"(group|head|layer|kernel|stride|pad|dilat|class|block|expert|expan|top_?k|window|cluster)|^k$")
"""Names whose numbers say how a model is built; what they must divide would no longer fit."""
BATCH = re.compile(r"batch|^bs$|^b$", re.IGNORECASE)
FEATURE = re.compile(
    r"channel|feature|hidden|embd|embed|in_size|input_size|output_size|vocab|d_model|state|planes|width_mult|ff",
    re.IGNORECASE,
)


class Size(Struct, frozen=True):
    """One number of the source: `label` is "N", or "input_shape[0]" inside a tuple. Offsets in bytes of UTF-8."""

    label: str
    value: int
    text: str
    start: int
    end: int

    @property
    def role(self) -> str:
        """ "batch", "feature" (what parameters are made of) or "extent" (everything else)."""
        name = self.label.partition("[")[0]
        return "batch" if BATCH.search(name) else "feature" if FEATURE.search(name) else "extent"


def sizes(source: str) -> list[Size]:
    """The numbers that may be cut, in the order of the source; empty for what does not parse."""
    tree = parse(source)
    if isinstance(tree, str):
        return []
    starts = _line_starts(source)
    bound: dict[str, ast.expr] = dict(bindings(tree))
    found = []
    for name, value in bound.items():
        if PART.search(name):
            continue
        nodes = (
            [(f"{name}[{i}]", node) for i, node in enumerate(value.elts)]
            if isinstance(value, (ast.Tuple, ast.List))
            else [(name, value)]
        )
        for label, node in nodes:
            number = _number(node)
            if number is None or number < LEAST or node.end_lineno is None or node.end_col_offset is None:
                continue
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            found.append(Size(label, number, source.encode()[start:end].decode(), start, end))
    return sorted(found, key=lambda size: size.start)


def with_sizes(source: str, known: list[Size], values: Mapping[str, int]) -> str:
    """The source with the sizes in `values` (by label) changed, everything else as it was."""
    text = source.encode()
    for size in sorted(known, key=lambda one: -one.start):
        if size.label in values:
            text = text[: size.start] + str(values[size.label]).encode() + text[size.end :]
    return text.decode()


def changed(known: list[Size], values: Mapping[str, int]) -> tuple[str, ...]:
    """ "batch_size 4096 → 64": what `with_sizes` changes, in words."""
    return tuple(f"{s.label} {s.value} → {values[s.label]}" for s in known if values.get(s.label, s.value) != s.value)


def titled(source: str, title: str) -> str:
    """The source with `title` as the first line of its docstring, before what that said."""
    tree = parse(source)
    plain = title.replace("\\", "/").replace('"', "'")
    if isinstance(tree, str) or ast.get_docstring(tree) is None:
        return f'"""{plain}."""\n{source}'
    node = tree.body[0]
    assert isinstance(node, ast.Expr) and node.end_lineno is not None and node.end_col_offset is not None
    starts = _line_starts(source)
    start = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    before = (ast.get_docstring(tree) or "").replace("\\", "/").replace('"', "'")
    text = source.encode()
    return (text[:start] + f'"""{plain}.\n\n{before}\n"""'.encode() + text[end:]).decode()


def _line_starts(source: str) -> list[int]:
    starts = [0]
    # As the parser counts lines: only \n ends one here, \r\n keeps its \r before it.
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _number(node: ast.expr) -> int | None:
    """The value of a product, sum, difference, quotient or power of plain integers; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _number(node.left), _number(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.FloorDiv) and right:
        return left // right
    if isinstance(node.op, ast.Pow) and 0 <= right <= 64 and abs(left) <= 1024:
        return int(left**right)
    return None
