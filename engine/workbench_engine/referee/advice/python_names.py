"""What a Python expression stands for, as far as it can be told without running it.

Names are followed through imports, aliases and literal `getattr`; strings are joined where they were split. This reads
one file without its control flow: a name bound twice stands for all that it was bound to.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence

LONGEST_TEXT = 200_000
DEEPEST = 60
STAR_NAMES = {
    "threading": ("Thread", "Timer"),
    "time": ("time", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "sleep"),
    "os": ("fork", "system", "popen", "_exit", "kill", "spawnv", "open", "dup2"),
    "inspect": ("stack", "currentframe", "getouterframes", "getinnerframes"),
    "ctypes": ("CDLL", "PyDLL", "pythonapi", "memmove", "string_at", "cast", "util"),
    "subprocess": ("run", "Popen", "call", "check_output", "check_call"),
    "multiprocessing": ("Process", "Pool"),
    "concurrent.futures": ("ThreadPoolExecutor", "ProcessPoolExecutor"),
    "contextlib": ("suppress",),
    "functools": ("lru_cache", "cache"),
    "torch": ("matmul", "mm", "bmm", "einsum", "conv2d", "compile", "float16", "bfloat16", "half", "cuda", "backends"),
    "torch.cuda": ("Stream", "stream", "Event", "CUDAGraph", "graph", "synchronize"),
    "torch.nn.functional": ("linear", "conv2d", "softmax", "relu", "gelu", "layer_norm", "cross_entropy"),
    "gc": ("get_objects", "get_referrers", "get_referents"),
    "sys": ("_getframe", "_current_frames", "settrace", "setprofile", "modules"),
}
BUILTINS = frozenset(dir(builtins))
_IMPORTERS = frozenset(("builtins.__import__", "importlib.import_module", "importlib.__import__"))
_SELF = frozenset(("self", "cls"))


def nodes_of(root: ast.AST) -> list[ast.AST]:
    """Every node below `root` and itself, parents first; those without fields (contexts, operators) are left out:
    `ast.walk` visits them too, and most of the reading was spent there."""
    found = [root]
    for node in found:
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                found.extend(one for one in value if isinstance(one, ast.AST) and one._fields)
            elif isinstance(value, ast.AST) and value._fields:
                found.append(value)
    return found


class Names:
    """The bindings of one parsed file."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        """`nodes` are all nodes of the tree."""
        self._bound: dict[str, set[str]] = {}
        self._texts: dict[str, list[ast.expr]] = {}
        self._starred: set[str] = set()
        self._memo: dict[int, tuple[str, ...]] = {}
        assigned: list[tuple[str, ast.expr]] = []
        for node in nodes:
            if isinstance(node, ast.Import):
                for one in node.names:
                    if one.asname:
                        self._bind(one.asname, one.name)
                    else:
                        top = one.name.partition(".")[0]
                        self._bind(top, top)
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    if one.name == "*":
                        self._starred.add(node.module or "")
                    else:
                        self._bind(one.asname or one.name, f"{node.module or ''}.{one.name}")
            else:
                assigned += _assignments(node)
        for module in self._starred:
            for name in STAR_NAMES.get(module, ()):
                self._bind(name, f"{module}.{name}")
        for name, value in assigned:
            self._texts.setdefault(name, []).append(value)
        # A chain of aliases is followed as far as anybody honest would go.
        for _ in range(3):
            self._memo.clear()
            found = [(name, dotted) for name, value in assigned for dotted in self.all_of(value)]
            for name, dotted in found:
                self._bind(name, dotted)
        self._memo.clear()

    def _bind(self, name: str, dotted: str) -> None:
        bound = self._bound.setdefault(name, set())
        if len(bound) < 8:
            bound.add(dotted)

    def all_of(self, node: ast.expr, depth: int = 0) -> tuple[str, ...]:
        """The dotted names that an expression may stand for: `("torch.cuda.Stream",)`; empty when it is unknown."""
        if depth > DEEPEST:
            return ()
        known = self._memo.get(id(node))
        if known is None:
            self._memo[id(node)] = ()
            known = self._memo[id(node)] = tuple(dict.fromkeys(self._resolve(node, depth + 1)))[:8]
        return known

    def is_any(self, node: ast.expr, wanted: Iterable[str]) -> bool:
        """Whether an expression may stand for one of `wanted`."""
        return any(name in wanted for name in self.all_of(node))

    def _resolve(self, node: ast.expr, depth: int) -> Iterator[str]:
        if isinstance(node, ast.Name):
            if node.id in self._bound:
                yield from sorted(self._bound[node.id])
            elif node.id in BUILTINS and node.id not in self._texts:
                yield f"builtins.{node.id}"
            elif node.id in ("__builtins__", "__loader__"):
                yield "builtins"
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in _SELF:
                yield from sorted(self._bound.get(f".{node.attr}", ()))
            for base in self.all_of(node.value, depth):
                yield base if node.attr == "__dict__" else _joined(base, node.attr)
        elif isinstance(node, ast.Subscript):
            yield from self._item(node.value, node.slice, depth)
        elif isinstance(node, ast.Call):
            yield from self._call(node, depth)
        elif isinstance(node, ast.IfExp):
            yield from (*self.all_of(node.body, depth), *self.all_of(node.orelse, depth))
        elif isinstance(node, ast.BoolOp):
            for value in node.values[:8]:
                yield from self.all_of(value, depth)
        elif isinstance(node, ast.NamedExpr):
            yield from self.all_of(node.value, depth)

    def _item(self, value: ast.expr, index: ast.expr, depth: int) -> Iterator[str]:
        key = self.text(index)
        if key is None:
            return
        for base in self.all_of(value, depth):
            if base == "sys.modules":
                yield key
            elif base in ("builtins.globals()", "builtins.locals()"):
                yield from sorted(self._bound.get(key, ()))
            else:
                # A module's `__dict__` or `vars()`: what is under the key is the attribute.
                yield _joined(base, key)

    def _call(self, node: ast.Call, depth: int) -> Iterator[str]:
        for function in self.all_of(node.func, depth):
            if function in _IMPORTERS and node.args:
                module = self.text(node.args[0])
                if module:
                    yield module if function == "importlib.import_module" else module.partition(".")[0]
            elif function == "builtins.getattr" and len(node.args) >= 2:
                name = self.text(node.args[1])
                if name:
                    yield from (_joined(base, name) for base in self.all_of(node.args[0], depth))
            elif function == "builtins.vars" and node.args:
                yield from self.all_of(node.args[0], depth)
            elif function in ("builtins.globals", "builtins.locals"):
                yield f"{function}()"
            elif function == "functools.partial" and node.args:
                yield from self.all_of(node.args[0], depth)
            elif function.endswith((".__getattribute__", ".__getattr__", ".get")) and node.args:
                name = self.text(node.args[-1]) or self.text(node.args[0])
                base = function.rpartition(".")[0]
                if name and base == "sys.modules":
                    yield name
                elif name and base in ("builtins.object", "builtins.type") and len(node.args) == 2:
                    yield from (_joined(one, name) for one in self.all_of(node.args[0], depth))
                elif name:
                    yield _joined(base, name)
        if isinstance(node.func, ast.Call) and self.is_any(node.func.func, ("operator.attrgetter",)) and node.args:
            name = self.text(node.func.args[0]) if node.func.args else None
            if name:
                yield from (f"{base}.{name}" for base in self.all_of(node.args[0], depth))

    def text(self, node: ast.expr, depth: int = 0) -> str | None:
        """The string an expression is, split literals joined; None when it is not one or not known."""
        if depth > DEEPEST:
            return None
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bytes):
                return node.value.decode("utf-8", "replace")
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _SELF:
            node = ast.Name(f".{node.attr}")
        if isinstance(node, ast.Name):
            values = self._texts.get(node.id, ())
            # The largest is the code when a name holds a default and then the code.
            found = [t for value in values[:8] if (t := self.text(value, depth + 8)) is not None]
            return max(found, key=len) if found else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _short(self._parts(_terms(node), depth))
        if isinstance(node, ast.JoinedStr):
            return _short(self._parts([_inner(v) for v in node.values], depth, unknown="x"))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self._sliced(node, node.slice, depth)
        if isinstance(node, ast.Call):
            return self._text_call(node, depth)
        return None

    def _sliced(self, node: ast.Subscript, part: ast.Slice, depth: int) -> str | None:
        whole = self.text(node.value, depth + 1)
        bounds = [_number(one) for one in (part.lower, part.upper, part.step)]
        if whole is None or 0 in bounds[2:]:
            return None
        return whole[slice(*bounds)]

    def _text_call(self, node: ast.Call, depth: int) -> str | None:
        if isinstance(node.func, ast.Name) and node.func.id in ("chr", "str") and len(node.args) == 1:
            code = _number(node.args[0]) if node.func.id == "chr" else None
            if code is not None:
                return chr(code) if 0 <= code < 0x110000 else None
            return self.text(node.args[0], depth + 1) if node.func.id == "str" else None
        if not isinstance(node.func, ast.Attribute):
            return None
        method, on = node.func.attr, self.text(node.func.value, depth + 1)
        if on is None:
            return None
        if method == "join" and node.args:
            listed = node.args[0]
            if isinstance(listed, ast.List | ast.Tuple):
                return _short(self._parts(listed.elts, depth, between=on))
            whole = self.text(listed, depth + 1)
            return on.join(whole) if whole is not None and len(whole) * (len(on) + 1) < LONGEST_TEXT else None
        if method in ("lower", "upper", "strip", "title", "swapcase", "decode", "encode", "format"):
            return {"lower": on.lower(), "upper": on.upper(), "strip": on.strip(), "swapcase": on.swapcase()}.get(
                method, on
            )
        if method == "replace" and len(node.args) >= 2:
            old, new = self.text(node.args[0], depth + 1), self.text(node.args[1], depth + 1)
            if not old or new is None:
                # Code whose placeholders are filled in while it runs is still that code.
                return on
            return on.replace(old, new) if len(on) * max(1, len(new)) < LONGEST_TEXT else on
        return None

    def _parts(
        self, nodes: Sequence[ast.expr], depth: int, unknown: str | None = None, between: str = ""
    ) -> str | None:
        found: list[str] = []
        total = 0
        for node in nodes:
            part = self.text(node, depth + 1)
            if part is None:
                # A long text with an unknown piece is still worth reading; a short one could be anything.
                if unknown is None and total < 40:
                    return None
                part = unknown or "x"
            found.append(part)
            total += len(part) + len(between)
            if total > LONGEST_TEXT:
                return None
        return between.join(found)


def _joined(base: str, name: str) -> str:
    """`base.name`; module objects of builtins are themselves."""
    return name if base == "builtins" and name == "builtins" else f"{base}.{name}"


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST_TEXT else None


def _terms(node: ast.BinOp) -> list[ast.expr]:
    """The summands of a chain of additions, without recursion: source is often glued from hundreds of lines."""
    terms: list[ast.expr] = []
    one: ast.expr = node
    while isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add):
        terms.append(one.right)
        one = one.left
    terms.append(one)
    return terms[::-1]


def _inner(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.FormattedValue) else node


def _number(node: ast.expr | None) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return None if value is None else -value
    return None


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(name, value) of every plain binding in a node; tuples are matched item by item."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _paired(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        if node.value is not None:
            yield from _paired(node.target, node.value)
    elif isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            if item.optional_vars is not None:
                yield from _paired(item.optional_vars, item.context_expr)
    elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.List | ast.Tuple):
        for value in node.iter.elts[:8]:
            yield from _paired(node.target, value)
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        for argument, default in zip(reversed(positional), reversed(node.defaults), strict=False):
            yield argument.arg, default
        for argument, keyword in zip(node.kwonlyargs, node.kw_defaults, strict=True):
            if keyword is not None:
                yield argument.arg, keyword


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in _SELF:
        # Attributes of self and of the class are followed under a name that no variable can have.
        yield f".{target.attr}", value
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, its in zip(target.elts, value.elts, strict=False):
            yield from _paired(one, its)
