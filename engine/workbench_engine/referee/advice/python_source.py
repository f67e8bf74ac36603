"""Advice on a Python file, the code in its strings included."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence

from msgspec import Struct

from workbench_engine.referee.advice.codes import Advice, advice
from workbench_engine.referee.advice.cxx_rules import looks_like_cxx, read_cxx
from workbench_engine.referee.advice.python_names import Names, nodes_of
from workbench_engine.referee.advice.python_rules import Reader
from workbench_engine.referee.advice.python_table import COMPILERS

LEAST_CODE = 24
MOST_STRINGS = 200
_RUNNERS = ("builtins.exec", "builtins.eval", "builtins.compile")


class Read(Struct, frozen=True):
    """`compiled`: the file carries code of its own that is compiled, and how ("load_inline", "triton.jit")."""

    advice: tuple[Advice, ...]
    compiled: str = ""


def read_python(text: str, depth: int = 0) -> Read:
    """Never raises: what does not parse gives "unparsable"."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        nodes = nodes_of(tree)
        names = Names(nodes)
        found = list(Reader(nodes, names).read())
        inner = list(_embedded(nodes, names, depth))
    except SyntaxError as error:
        return Read((advice("unparsable", error.lineno or 1, error.msg),))
    except (ValueError, RecursionError, MemoryError) as error:
        return Read((advice("unparsable", 1, str(error) or type(error).__name__),))
    for read in inner:
        found += read.advice
    compiled = _compiler(nodes, names) or next((read.compiled for read in inner if read.compiled), "")
    return Read(tuple(found), compiled)


def _compiler(nodes: Sequence[ast.AST], names: Names) -> str:
    """By what the file compiles or loads code of its own; "" when by nothing."""
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Name | ast.Call):
            for dotted in names.all_of(node):
                if dotted in COMPILERS:
                    return dotted
    return ""


def _embedded(nodes: Sequence[ast.AST], names: Names, depth: int) -> Iterator[Read]:
    """C++ in any string that is one, and Python in strings that are executed."""
    if depth > 2:
        return
    docstrings = _docstrings(nodes)
    inside = {
        id(part)
        for node in nodes
        if isinstance(node, ast.BinOp | ast.JoinedStr) and names.text(node) is not None
        for part in _direct(node)
    }
    # `__doc__` as a source is a string like any other.
    uses_doc = any(isinstance(node, ast.Name | ast.Attribute) and _last(node) == "__doc__" for node in nodes)
    seen: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and node.args and names.is_any(node.func, _RUNNERS):
            code = names.text(node.args[0])
            if code is not None:
                read = read_python(code, depth + 1)
                yield Read(tuple(Advice(a.code, node.lineno, a.text, a.rows) for a in read.advice), read.compiled)
        if not isinstance(node, ast.Constant | ast.BinOp | ast.JoinedStr | ast.Call) or len(seen) > MOST_STRINGS:
            continue
        if id(node) in inside or (id(node) in docstrings and not uses_doc):
            continue
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            continue
        code = names.text(node)
        if code is None or len(code) < LEAST_CODE or code in seen or not looks_like_cxx(code):
            continue
        seen.add(code)
        found, is_code = read_cxx(code)
        if not is_code:
            continue
        keeps = _keeps_lines(node)
        moved = (Advice(a.code, node.lineno + (a.line - 1 if keeps else 0), a.text, a.rows) for a in found)
        yield Read(tuple(moved))


def _direct(node: ast.BinOp | ast.JoinedStr) -> list[ast.AST]:
    """The parts of a glued string: they are read as one, where that is known."""
    if isinstance(node, ast.JoinedStr):
        return list(node.values)
    return [node.left, node.right] if isinstance(node.op, ast.Add) else []


def _docstrings(nodes: Sequence[ast.AST]) -> set[int]:
    """Strings that stand alone as statements: nothing uses them."""
    return {id(node.value) for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}


def _last(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _keeps_lines(node: ast.expr) -> bool:
    """Whether line n of the string is line n of its literal."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return node.value.count("\n") == (node.end_lineno or 0) - node.lineno
