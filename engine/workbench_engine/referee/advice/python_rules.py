"""Advice on Python: the syntax tree with its names resolved, so that spelling and comments do not matter."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from workbench_engine.referee.advice.codes import Advice, advice
from workbench_engine.referee.advice.python_names import Names, nodes_of
from workbench_engine.referee.advice.python_table import (
    ATTRIBUTES,
    DYNAMIC_MODULES,
    LIBRARY_FILES,
    METHODS,
    NATIVE_FILES,
    NATIVE_SYMBOLS,
    code_of,
)

_FLAG_ROOTS = ("torch.backends", "torch._dynamo", "torch._inductor", "os.environ", "torch.fx", "torch._C")
_OWN = frozenset(("builtins.globals()", "builtins.locals()"))
_TENSOR = ("torch.Tensor", "torch._C.TensorBase", "torch._C._TensorBase", "torch.nn.Parameter")
_LOADERS = ("ctypes.CDLL", "ctypes.cdll.LoadLibrary", "torch.ops.load_library")
_SETTERS = ("builtins.setattr", "builtins.delattr", "builtins.object.__setattr__", "builtins.type.__setattr__")
_MUTATORS = frozenset(("update", "setdefault", "pop", "clear", "__setitem__", "__delitem__"))
_INPLACE = frozenset(("copy_", "set_", "resize_", "swap_"))


class Reader:
    """The advice on one parsed file."""

    def __init__(self, nodes: Sequence[ast.AST], names: Names) -> None:
        self._nodes = nodes
        self._names = names
        self._inner: set[int] = set()
        self._called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self._keys = _identity_names(nodes, names)

    def read(self) -> Iterator[Advice]:
        """Everything seen, in no particular order, repeats included."""
        for node in self._nodes:
            if isinstance(node, ast.expr):
                yield from self._expression(node)
            elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
                yield from self._try(node)  # type: ignore[arg-type]
            elif isinstance(node, ast.ClassDef):
                yield from self._class(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self._function(node)
            elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
                yield from self._assignment(node)

    # Names and calls

    def _expression(self, node: ast.expr) -> Iterator[Advice]:
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            yield from self._named(node)
        if isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield advice("library", node.lineno, "the operator @")
        elif isinstance(node, ast.Compare):
            yield from self._compare(node)
        elif isinstance(node, ast.Subscript):
            yield from self._keyed(node.slice, node.lineno)

    def _named(self, node: ast.expr) -> Iterator[Advice]:
        """Names are judged once a chain: in `torch.cuda.Stream` the parts before the last say nothing."""
        if isinstance(node, ast.Attribute | ast.Subscript):
            self._inner.add(id(node.value))
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Store):
            code = ATTRIBUTES.get(node.attr)
            if code == "cast" and (self._names.all_of(node) or id(node) not in self._called):
                # `x.half()` casts; `self.half` may be anything.
                code = None
            if code is not None:
                yield advice(code, node.lineno, node.attr)
            if node.attr in NATIVE_SYMBOLS and not self._is_known(node.value):
                yield advice("native", node.lineno, node.attr)
        if id(node) in self._inner or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return
        for dotted in self._names.all_of(node):
            code = code_of(dotted)
            if code is not None:
                yield advice(code, node.lineno, dotted.removeprefix("builtins."))

    def _is_known(self, node: ast.expr) -> bool:
        return bool(self._names.all_of(node))

    def _call(self, node: ast.Call) -> Iterator[Advice]:
        function = self._names.all_of(node.func)
        if isinstance(node.func, ast.Attribute):
            yield from self._method(node, node.func, function)
        for dotted in function:
            if dotted in _SETTERS and node.args:
                yield from self._set(node)
            elif dotted == "builtins.getattr" and len(node.args) >= 2 and self._names.text(node.args[1]) is None:
                if self._names.is_any(node.args[0], DYNAMIC_MODULES):
                    yield advice("hidden-code", node.lineno, "getattr with a computed name")
            elif dotted in ("importlib.import_module", "builtins.__import__"):
                if not node.args or self._names.text(node.args[0]) is None:
                    yield advice("hidden-code", node.lineno, "import of a computed name")
            elif dotted in _LOADERS:
                yield from self._library(node)
            elif dotted == "builtins.type" and len(node.args) == 3:
                if isinstance(node.args[1], ast.Tuple) and any(
                    self._names.is_any(base, _TENSOR) for base in node.args[1].elts
                ):
                    yield advice("lazy-tensor", node.lineno, "type() with torch.Tensor as its base")
            elif dotted == "types.new_class" and any(
                isinstance(child, ast.expr) and self._names.is_any(child, _TENSOR) for child in nodes_of(node)
            ):
                yield advice("lazy-tensor", node.lineno, "types.new_class with torch.Tensor as its base")
            elif dotted in ("torch.equal", "torch.allclose") and any(_is_of_self(one) for one in node.args):
                yield advice("cache", node.lineno, f"{dotted} with something kept")

    def _method(self, node: ast.Call, function: ast.Attribute, resolved: tuple[str, ...]) -> Iterator[Advice]:
        method, on = function.attr, self._names.all_of(function.value)
        if method in METHODS and not resolved:
            yield advice("library", node.lineno, f"method {method}")
        if method in ("get", "setdefault", "pop") and node.args:
            yield from self._keyed(node.args[0], node.lineno)
        if method in _MUTATORS and any(_is_foreign(one) or one == "sys.modules" for one in on):
            where = on[0]
            code = "global-flag" if where.startswith(_FLAG_ROOTS) else "patch"
            yield advice(code, node.lineno, f"{where}.{method}")
        if method in ("to", "type", "astype") and any(self._names.text(a) in _LOW for a in node.args):
            yield advice("cast", node.lineno, f"method {method}")

    def _set(self, node: ast.Call) -> Iterator[Advice]:
        for owner in self._names.all_of(node.args[0]):
            if _is_foreign(owner):
                name = (self._names.text(node.args[1]) if len(node.args) > 1 else None) or "?"
                code = "global-flag" if owner.startswith(_FLAG_ROOTS) else "patch"
                yield advice(code, node.lineno, f"{owner}.{name}")
        if isinstance(node.args[0], ast.Call) and self._names.is_any(node.args[0].func, ("builtins.type",)):
            yield advice("patch", node.lineno, "the class of an object")

    def _library(self, node: ast.Call) -> Iterator[Advice]:
        if not node.args or (isinstance(node.args[0], ast.Constant) and node.args[0].value is None):
            yield advice("native", node.lineno, "the symbols of the process itself")
            return
        path = (self._names.text(node.args[0]) or "").lower()
        if any(name in path for name in LIBRARY_FILES):
            yield advice("library", node.lineno, path[:60])
        elif any(name in path for name in NATIVE_FILES):
            yield advice("native", node.lineno, path[:60])

    # Assignments

    def _assignment(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete) -> Iterator[Advice]:
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
        for target in targets:
            for one in _flat(target):
                yield from self._target(one)

    def _target(self, target: ast.expr) -> Iterator[Advice]:
        if isinstance(target, ast.Name):
            if target.id in ("get_inputs", "get_init_inputs"):
                yield advice("redefines-task", target.lineno, target.id)
            return
        if not isinstance(target, ast.Attribute | ast.Subscript):
            return
        if isinstance(target, ast.Attribute) and target.attr == "__class__":
            yield advice("patch", target.lineno, "the class of an object")
        owner = target.value
        if isinstance(owner, ast.Call) and self._names.is_any(owner.func, ("builtins.type",)):
            yield advice("patch", target.lineno, "the class of an object")
        for dotted in self._names.all_of(owner):
            if not _is_foreign(dotted):
                continue
            name = target.attr if isinstance(target, ast.Attribute) else self._names.text(target.slice) or "[]"
            code = "global-flag" if f"{dotted}.{name}".startswith(_FLAG_ROOTS) else "patch"
            yield advice(code, target.lineno, f"{dotted}.{name}")

    # Caches

    def _keyed(self, key: ast.expr, line: int) -> Iterator[Advice]:
        """A look-up by identity, address, content or shape."""
        for part in _key_parts(key):
            what = _identity(part, self._names)
            if isinstance(part, ast.Name) and what is None:
                what = self._keys.get(part.id)
            if what == "shape":
                yield advice("workspace", line, "looked up by shape")
            elif what is not None:
                yield advice("cache", line, f"looked up by {what}")

    def _compare(self, node: ast.Compare) -> Iterator[Advice]:
        operands = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if isinstance(operator, ast.In | ast.NotIn):
                yield from self._keyed(left, node.lineno)
            elif isinstance(operator, ast.Is | ast.IsNot):
                if all(isinstance(side, ast.Attribute | ast.Subscript | ast.Name) for side in (left, right)) and any(
                    _is_of_self(side) for side in (left, right)
                ):
                    yield advice("cache", node.lineno, "compares identity with something kept")
            elif isinstance(operator, ast.Eq | ast.NotEq) and any(_is_of_self(side) for side in (left, right)):
                for side in (left, right):
                    found = [i for i in _key_parts(side) if (_identity(i, self._names) or self._key_of(i)) is not None]
                    if found and (_identity(found[0], self._names) or self._key_of(found[0])) != "shape":
                        yield advice("cache", node.lineno, "compares with what an earlier call kept")

    def _key_of(self, node: ast.expr) -> str | None:
        return self._keys.get(node.id) if isinstance(node, ast.Name) else None

    # Statements

    def _try(self, node: ast.Try) -> Iterator[Advice]:
        for handler in node.handlers:
            if not _always_raises(handler.body):
                yield advice("fallback", handler.lineno, "except")
        if any(isinstance(one, ast.Return | ast.Break | ast.Continue) for one in node.finalbody):
            yield advice("fallback", node.finalbody[0].lineno, "finally that leaves")

    def _class(self, node: ast.ClassDef) -> Iterator[Advice]:
        for base in node.bases:
            if self._names.is_any(base, _TENSOR[:3]):
                yield advice("lazy-tensor", node.lineno, f"class {node.name}")
            if isinstance(base, ast.Name) and base.id == "Model":
                yield advice("reference", node.lineno, f"class {node.name}(Model)")

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Advice]:
        if node.name in ("get_inputs", "get_init_inputs"):
            yield advice("redefines-task", node.lineno, node.name)
        if node.name == "__exit__" and _returns_true(node):
            yield advice("fallback", node.lineno, "__exit__ that swallows exceptions")
        if node.name in ("__torch_function__", "__torch_dispatch__"):
            yield advice("lazy-tensor", node.lineno, node.name)
        inside = nodes_of(node)
        yield from _counters(inside)
        if node.name in ("forward", "__call__"):
            yield from _forward(node, inside)


_LOW = frozenset(("float16", "half", "bfloat16", "torch.float16", "torch.bfloat16", "torch.HalfTensor", "f2", "<f2"))


def _is_foreign(dotted: str) -> bool:
    """Every name that could be resolved came from an import or is built in; the file's own names never resolve."""
    return dotted not in _OWN


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            yield from _flat(one)
    else:
        yield target


def _key_parts(key: ast.expr) -> list[ast.expr]:
    return list(key.elts) if isinstance(key, ast.Tuple) else [key]


def _is_of_self(node: ast.expr) -> bool:
    """`self.x`, `self.x[...]`, `Class.x`: something that outlives the call."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def _identity(node: ast.expr, names: Names) -> str | None:
    """What an expression identifies a tensor by, if it does: "address", "identity", "content", "shape"."""
    # x.shape[0] is an ordinary number; x.shape is a key.
    indexed = {id(one.value) for one in nodes_of(node) if isinstance(one, ast.Subscript)}
    pointed = False
    for one in nodes_of(node):
        if isinstance(one, ast.Call):
            if isinstance(one.func, ast.Attribute):
                if one.func.attr in ("data_ptr", "storage", "untyped_storage"):
                    return "address"
                if one.func.attr in ("item", "tobytes", "tolist", "hexdigest", "digest"):
                    return "content"
                pointed = pointed or (one.func.attr == "size" and not one.args and id(one) not in indexed)
            elif names.is_any(one.func, ("builtins.id",)):
                return "identity"
            elif names.is_any(one.func, ("builtins.hash",)):
                return "content"
        elif isinstance(one, ast.Attribute):
            if one.attr in ("_version", "_cdata"):
                return "identity"
            pointed = pointed or (one.attr == "shape" and id(one) not in indexed)
    return "shape" if pointed else None


def _identity_names(nodes: Sequence[ast.AST], names: Names) -> dict[str, str]:
    """Variables that hold what a tensor is identified by."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.NamedExpr):
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:
            if isinstance(target, ast.Name) and isinstance(value, ast.Tuple | ast.Call | ast.Attribute | ast.JoinedStr):
                parts = [what for part in _key_parts(value) if (what := _identity(part, names)) is not None]
                if parts:
                    found[target.id] = next((what for what in parts if what != "shape"), "shape")
    return found


def _always_raises(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise) and not any(isinstance(one, ast.Return) for one in body)


def _returns_true(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    returns = [one for one in nodes_of(node) if isinstance(one, ast.Return) and one.value is not None]
    return any(not (isinstance(r.value, ast.Constant) and not r.value.value) for r in returns)


def _counters(inside: Sequence[ast.AST]) -> Iterator[Advice]:
    """Attributes or globals that are increased here and looked at in a condition."""
    shared = {name for one in inside if isinstance(one, ast.Global | ast.Nonlocal) for name in one.names}
    raised: dict[str, int] = {}
    tested: set[str] = set()
    for one in inside:
        if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add | ast.Sub):
            raised.update({name: one.lineno for name in _kept_name(one.target, shared)})
        elif isinstance(one, ast.Assign) and isinstance(one.value, ast.BinOp) and len(one.targets) == 1:
            kept = _kept_name(one.targets[0], shared)
            sides = [*_kept_name(one.value.left, shared), *_kept_name(one.value.right, shared)]
            raised.update({name: one.lineno for name in kept if name in sides})
        elif isinstance(one, ast.If | ast.IfExp | ast.While):
            tested.update(n for inner in nodes_of(one.test) for n in _kept_name(inner, shared))
        elif isinstance(one, ast.Subscript):
            tested.update(n for inner in nodes_of(one.slice) for n in _kept_name(inner, shared))
    for name in sorted(tested & set(raised)):
        yield advice("call-count", raised[name], name)


def _kept_name(node: ast.AST, shared: set[str]) -> list[str]:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return [f"{node.value.id}.{node.attr}"]
    if isinstance(node, ast.Name) and node.id in shared:
        return [node.id]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id.isupper():
        return [node.value.id]
    return []


def _forward(node: ast.FunctionDef | ast.AsyncFunctionDef, inside: Sequence[ast.AST]) -> Iterator[Advice]:
    """What a forward method does to its arguments, and whether it returns what was kept."""
    arguments = {one.arg for one in [*node.args.posonlyargs, *node.args.args]} - {"self"}
    for one in inside:
        if isinstance(one, ast.Assign):
            for target in one.targets:
                for flat in _flat(target):
                    if isinstance(flat, ast.Name):
                        # Rebound: from here on it is another thing.
                        arguments.discard(flat.id)
    for one in inside:
        if isinstance(one, ast.Assign | ast.AugAssign):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            for target in targets:
                if isinstance(target, ast.Subscript) and _root(target) in arguments:
                    yield advice("input-write", one.lineno, f"{_root(target)}[...]")
                if isinstance(one, ast.AugAssign) and isinstance(target, ast.Name) and target.id in arguments:
                    yield advice("input-write", one.lineno, target.id)
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            name, on = one.func.attr, _root(one.func.value)
            inplace = name in _INPLACE or (name.endswith("_") and not name.startswith("_") and name != "requires_grad_")
            if inplace and on in arguments and isinstance(one.func.value, ast.Name | ast.Attribute | ast.Subscript):
                yield advice("input-write", one.lineno, f"{on}.{name}")
            for keyword in one.keywords:
                if keyword.arg == "out" and _root(keyword.value) in arguments:
                    yield advice("input-write", one.lineno, f"out={_root(keyword.value)}")
        elif isinstance(one, ast.Return) and one.value is not None and _is_of_self(one.value):
            yield advice("cache", one.lineno, "returns what the object keeps")


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
