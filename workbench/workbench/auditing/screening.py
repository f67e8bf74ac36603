"""What can be said of a row before anything runs: is there code, is it Python, is it the reference's own. Pure.

The sources are parsed, never executed. What is said here is a state of the row or a badge; right and wrong, fast and
slow are the referee's.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from msgspec import Struct

from workbench.auditing.constants import constants, override, parse
from workbench.auditing.rows import Finding, Row
from workbench_engine.referee.findings import BY_CODE

INPUT_FUNCTIONS = ("get_inputs", "get_init_inputs")
DEVICE_MODULES = ("triton", "cupy", "pycuda", "numba.cuda", "tilelang", "cutlass")


class Screened(Struct, frozen=True):
    """`state` "" means: for the referee. `device_code`: it holds kernels for a GPU."""

    state: str
    reason: str
    findings: list[Finding]
    reference: str
    candidate: str
    changed: list[str]
    device_code: bool = False


def finding(code: str, text: str = "") -> Finding:
    """A finding of a known kind."""
    kind = BY_CODE[code]
    return Finding(code, kind.severity, text or kind.text)


def screen(row: Row, values: Mapping[str, int] | None = None) -> Screened:
    """The row with its constants overridden, and its state where that is plain already."""
    reference, changed = override(row.reference, values or {})

    def end(state: str, code: str, reason: str) -> Screened:
        return Screened(state, reason, [finding(code, reason)], reference, row.candidate or "", changed)

    if row.problem:
        return end("BAD ROW", "bad-row", f"{row.where}: {row.problem}" if row.where else row.problem)
    text = (row.candidate or "").strip()
    if row.candidate is None:
        return end("NO CODE", "no-code", "the row has no code (null)")
    if not text:
        return end("NO CODE", "no-code", "the code is empty")
    if text.lower() in ("none", "null", "nan"):
        return end("NO CODE", "no-code", f"the code is the word {text!r}")
    if row.kind != "module":
        return Screened("", "", [], reference, row.candidate, changed)
    tree = parse(row.candidate)
    if isinstance(tree, str):
        fence = "; it begins with a Markdown fence" if text.startswith("```") else ""
        return end("NOT PYTHON", "not-python", f"{tree}{fence}")
    original = parse(row.reference)
    if not isinstance(original, str) and same_code(original, tree):
        return end("UNCHANGED", "same-as-reference", "the code is the reference's own")
    if not _binds(tree, "ModelNew"):
        return end("NO MODELNEW", "no-modelnew", "the code defines no ModelNew")
    found = [] if isinstance(original, str) else [finding("redefined-inputs", t) for t in redefined(original, tree)]
    candidate, also = override(row.candidate, values or {})
    changed = [*changed, *(f"{text} (candidate)" for text in also)]
    return Screened("", "", found, reference, candidate, changed, has_device_code(tree))


def same_code(reference: ast.Module, candidate: ast.Module) -> bool:
    """Whether the two are one program, but for comments, docstrings, layout and the class being called ModelNew."""
    try:
        return ast.dump(_Plain().visit(_copy(reference))) == ast.dump(_Plain().visit(_copy(candidate)))
    except RecursionError:
        return False


def redefined(reference: ast.Module, candidate: ast.Module) -> list[str]:
    """In which sizes or input functions the candidate's file differs from the reference's, each in one line."""
    ours, theirs = constants(reference), constants(candidate)
    said = [f"sets {n} = {theirs[n]}, the reference {ours[n]}" for n in ours if n in theirs and theirs[n] != ours[n]]
    mine, its = _functions(reference), _functions(candidate)
    said += [f"has another {n} than the reference" for n in INPUT_FUNCTIONS if n in its and its[n] != mine.get(n)]
    return said


def has_device_code(tree: ast.Module) -> bool:
    """Whether a GPU kernel is written in it: CUDA C++ in a text, or a module that compiles for GPUs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__global__" in node.value:
            return True
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        if any(name == m or name.startswith(f"{m}.") for name in names for m in DEVICE_MODULES):
            return True
    return False


def _binds(tree: ast.Module, name: str) -> bool:
    """Whether `name` is bound anywhere, or named in a text that may bind it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) in (name, "*"):
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and name in node.value:
            return True
    return False


def _functions(tree: ast.Module) -> dict[str, str]:
    try:
        return {
            node.name: ast.dump(_Plain().visit(_copy(node)))
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name in INPUT_FUNCTIONS
        }
    except RecursionError:
        return {}


def _copy(node: ast.AST) -> ast.AST:
    import copy

    return copy.deepcopy(node)


class _Plain(ast.NodeTransformer):
    """Docstrings out, ModelNew called Model."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.Name) and node.id == "ModelNew":
            node.id = "Model"
        if isinstance(node, ast.ClassDef) and node.name == "ModelNew":
            node.name = "Model"
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Module) and node.body and _is_text(node.body[0]):
            del node.body[0]
        return node


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
