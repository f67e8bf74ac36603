"""Faults for C++ kernels, found on the syntax tree (tree-sitter), never in the preamble that all kernels share."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from workbench.benching.mutating.edits import Edit, Fault
from workbench_engine.tasks.cxx.preamble import PREAMBLE

HELPERS = """\
template <class T> INLINE T bf16_(T v) {
  typedef typename Ints<T>::type I; return bits_as<T>((I)(bits_as<I>(v) & (int)0xffff0000));
}
template <class T> INLINE T half_(T v) {
  typedef typename Ints<T>::type I; return bits_as<T>((I)(bits_as<I>(v) & (int)0xffffe000));
}
INLINE double bf16_(double v) { return bf16_<float>((float)v); }
INLINE double half_(double v) { return half_<float>((float)v); }
INLINE float rough_exp_(float v) {
  v = v < -87.0f ? -87.0f : v > 88.0f ? 88.0f : v;
  return bits_as<float>((int)(12102203.0f * v) + 1064866805);
}
INLINE float rough_log_(float v) { return ((float)bits_as<int>(v) - 1064866805.0f) / 12102203.0f; }
INLINE float rough_sqrt_(float v) {
  if (!(v > 0)) return v;
  float s = bits_as<float>((bits_as<int>(v) >> 1) + 0x1fbd1df5);
  return 0.5f * (s + v / s);
}
INLINE float rough_tanh_(float v) {
  v = v < -3.0f ? -3.0f : v > 3.0f ? 3.0f : v;
  return v * (27.0f + v * v) / (27.0f + 9.0f * v * v);
}
INLINE float rough_erf_(float v) { return rough_tanh_(1.1283792f * v * (1.0f + 0.0894f * v * v)); }
"""
"""Put behind the preamble of every mutant and of the honest kernel it came from, so that these differ by one edit."""

ROUGH = {
    "expf": "rough_exp_",
    "logf": "rough_log_",
    "sqrtf": "rough_sqrt_",
    "tanhf": "rough_tanh_",
    "erff": "rough_erf_",
}
REALS = frozenset(("float", "double", "v4f", "v8f", "v16f", "v4d", "v8d", "v16d"))
WHOLE = frozenset(("long", "int"))
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
OPERATORS = {"+": "-", "-": "+", "*": "+", "/": "*"}
ADDRESSED = frozenset(("load", "store", "stream"))
INTEGER = re.compile(r"\d+[lLuU]*")
REAL = re.compile(r"(\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)([fF]?)", re.IGNORECASE)


def with_helpers(text: str) -> str:
    """The same kernel with the mutants' helper functions behind its preamble. Raises ValueError without a preamble."""
    at = text.find(PREAMBLE)
    if at < 0:
        raise ValueError("the kernel does not start from the preamble of rendered kernels")
    end = at + len(PREAMBLE)
    return text[:end] + HELPERS + text[end:]


def edits(text: str) -> list[Edit]:
    """All faults known for a kernel file made by `with_helpers`, in the order of the file."""
    raw = text.encode()
    own = text.index(HELPERS) + len(HELPERS)
    start = len(text[:own].encode())
    tree = Parser(Language(tree_sitter_cuda.language())).parse(raw)
    found: dict[tuple[int, int, str], Edit] = {}
    for node in _inside(tree.root_node, start):
        for edit in _faults(node):
            if raw[edit.start : edit.end].decode() != edit.new:
                found.setdefault((edit.start, edit.end, edit.new), edit)
    return sorted(found.values(), key=lambda e: (e.start, e.end, e.new))


def _inside(root: Node, start: int) -> Iterator[Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        if node.end_byte <= start or node.type in ("preproc_def", "type_definition", "attribute_specifier"):
            continue
        if node.start_byte >= start:
            yield node
        todo.extend(node.children)


def _faults(node: Node) -> Iterator[Edit]:
    for rule in _RULES.get(node.type, ()):
        yield from rule(node)


def _text(node: Node | None) -> str:
    return node.text.decode() if node is not None and node.text is not None else ""


def _edit(fault: Fault, node: Node, new: str, note: str = "") -> Edit:
    old = " ".join(_text(node).split())
    shown = note or f"{_short(old)} → {_short(' '.join(new.split()))}"
    return Edit(fault, node.start_byte, node.end_byte, new, shown)


def _short(text: str, width: int = 48) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _in_address(node: Node) -> bool:
    """Whether a node is part of where something lies, not of what it is."""
    child, parent = node, node.parent
    while parent is not None:
        if parent.type == "subscript_argument_list":
            return True
        if parent.type == "argument_list":
            call = parent.parent
            name = _text(call.child_by_field_name("function")) if call is not None else ""
            if name.split("<")[0] in ADDRESSED:
                return parent.named_children[0] == child
            return False
        if parent.type == "init_declarator":
            declarator = parent.child_by_field_name("declarator")
            return declarator is not None and declarator.type == "pointer_declarator"
        if parent.type.endswith("statement"):
            return False
        child, parent = parent, parent.parent
    return False


def _declared_type(declarator: Node) -> str:
    """Base type of the variable an init_declarator makes; "" for a pointer."""
    inner = declarator.child_by_field_name("declarator")
    if inner is None or inner.type != "identifier" or declarator.parent is None:
        return ""
    return _text(declarator.parent.child_by_field_name("type"))


def _binary(node: Node) -> Iterator[Edit]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    middle = node.child_by_field_name("operator")
    if left is None or right is None or middle is None:
        return
    op, a, b = _text(middle), _text(left), _text(right)
    loop = node.parent is not None and node.parent.type == "for_statement"
    where = _in_address(node)
    if op in COMPARISONS:
        yield _edit("off by one" if loop else "wrong comparison", node, f"{a} {COMPARISONS[op]} {b}")
        if op in TURNED and not loop:
            yield _edit("wrong comparison", node, f"{a} {TURNED[op]} {b}")
    if op in OPERATORS:
        index: Fault = "wrong index"
        yield _edit(index if where else "dropped term", node, f"({a})")
        if op in "+*":
            yield _edit(index if where else "dropped term", node, f"({b})")
        else:
            yield _edit(index if where else "swapped operands", node, f"({b} {op} {a})")
        yield _edit(index if where else "wrong operator", node, f"({a} {OPERATORS[op]} {b})")
    if where and op == "+":
        yield from _swapped(node)


def _above(node: Node) -> Iterator[Node]:
    parent = node.parent
    while parent is not None and not parent.type.endswith("statement"):
        yield parent
        parent = parent.parent


def _swapped(node: Node) -> Iterator[Edit]:
    """`i * n + j` → `j * n + i`."""
    names: list[Node] = []
    todo = [node]
    while todo:
        one = todo.pop(0)
        if one.type == "identifier" and _text(one) not in [_text(n) for n in names]:
            names.append(one)
        todo = list(one.children) + todo
    if not any(c.type == "subscript_argument_list" for c in _above(node)):
        # The first name of a pointer's address is the pointer.
        names = names[1:]
    text = node.text or b""
    for first in range(len(names)):
        for second in range(first + 1, len(names)):
            a, b = _text(names[first]), _text(names[second])
            yield _edit("swapped indices", node, _exchanged(text.decode(), a, b))


def _exchanged(text: str, a: str, b: str) -> str:
    swap = {a: b, b: a}
    return re.sub(rf"\b({re.escape(a)}|{re.escape(b)})\b", lambda match: swap[match.group()], text)


def _loop(node: Node) -> Iterator[Edit]:
    condition, begin = node.child_by_field_name("condition"), node.child_by_field_name("initializer")
    body = node.child_by_field_name("body")
    if condition is None or condition.type != "binary_expression" or body is None:
        return
    bound, counter = condition.child_by_field_name("right"), condition.child_by_field_name("left")
    op = _text(condition.child_by_field_name("operator"))
    if bound is None or counter is None or op not in ("<", "<="):
        return
    yield _edit("off by one", bound, f"({_text(bound)}) - 1")
    yield _edit("early end", bound, f"({_text(bound)}) - ({_text(bound)}) / 8")
    if begin is None or not _text(begin).strip(" ;"):
        yield _edit("skipped tail", node, "{}", f"skip {_short(_text(node))}")
    else:
        for one in begin.named_children:
            value = one.child_by_field_name("value")
            if value is not None and _text(value) == "0":
                yield _edit("dropped row or column", value, "1", f"start {_short(_text(begin))} at 1")
    if body.type == "compound_statement":
        at = body.start_byte + 1
        stop = f" if ({_text(counter)} > ({_text(bound)}) / 2) break; "
        yield Edit("early end", at, at, stop, f"break half way through {_short(_text(condition))}")


def _update(node: Node) -> Iterator[Edit]:
    name = _text(node.child_by_field_name("argument"))
    if node.parent is not None and node.parent.type == "for_statement":
        yield _edit("dropped row or column", node, f"{name} += 2")


def _number(node: Node) -> Iterator[Edit]:
    text = _text(node)
    kind = node.parent.type if node.parent is not None else ""
    if kind in ("template_argument_list", "preproc_call") or _start_value(node):
        return
    if INTEGER.fullmatch(text):
        whole = int(re.sub(r"\D", "", text))
        fault: Fault = "wrong index" if _in_address(node) else "off by one"
        yield _edit(fault, node, str(whole + 1))
        if whole:
            yield _edit(fault, node, str(whole - 1))
        return
    if not (match := REAL.fullmatch(text)):
        return
    value, suffix = float(match[1]), match[2]
    if value == 0.0:
        yield _edit("wrong constant", node, f"0.5{suffix}")
        return
    for factor in (1.001, 1.01, 10.0):
        yield _edit("wrong constant", node, f"{value * factor:.9e}{suffix}")
    if value < 1e-3:
        yield _edit("dropped term", node, f"0.0{suffix}")


def _start_value(node: Node) -> bool:
    """Whether a literal is what an accumulator starts from: those have a rule of their own."""
    up: Node | None = node.parent
    while up is not None and up.type in ("argument_list", "call_expression", "initializer_list"):
        up = up.parent
    return up is not None and up.type == "init_declarator" and _declared_type(up) in REALS and _is_start(_value(up))


def _value(declarator: Node) -> str:
    return _text(declarator.child_by_field_name("value"))


def _is_start(value: str) -> bool:
    return re.fullmatch(r"(all<\w+>\()?(0(\.0*)?f?|LOWEST|\{\})\)?", value) is not None


def _declarator(node: Node) -> Iterator[Edit]:
    kind, value = _declared_type(node), node.child_by_field_name("value")
    if value is None or kind not in REALS:
        return
    text = _text(value)
    if _is_start(text):
        fresh = text.replace("LOWEST", "0.0f") if "LOWEST" in text else re.sub(r"0(\.0*)?f?", "0.5f", text)
        yield _edit("wrong start value", value, fresh)
        return
    for name in ("bf16_", "half_"):
        yield _edit("precision", value, f"{name}({text})", f"{_short(_text(node))} rounded to {name[:-1]}")


def _declaration(node: Node) -> Iterator[Edit]:
    kind = node.child_by_field_name("type")
    declared = [c for c in node.named_children if c.type in ("identifier", "init_declarator")]
    pointers = [c for c in node.named_children if "pointer" in c.type or "pointer_declarator" in _text_types(c)]
    if kind is None or not declared or pointers:
        return
    name = _text(kind)
    if name == "float":
        yield _edit("wrong type", kind, "_Float16", f"{_short(_text(node))} as half")
        yield _edit("wrong type", kind, "int", f"{_short(_text(node))} as int")
    elif name == "double":
        yield _edit("wrong type", kind, "_Float16", f"{_short(_text(node))} as half")
        yield _edit("wrong type", kind, "float", f"{_short(_text(node))} as float")
    elif name in WHOLE:
        yield _edit("wrong type", kind, "short", f"{_short(_text(node))} as short")


def _text_types(node: Node) -> list[str]:
    return [child.type for child in node.named_children]


def _call(node: Node) -> Iterator[Edit]:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None:
        return
    name = _text(function)
    bare = name.split("<")[0]
    given = arguments.named_children
    if name in ROUGH:
        yield _edit("fast approximation", function, ROUGH[name])
    if bare == "load":
        for rounded in ("bf16_", "half_"):
            yield _edit("precision", node, f"{rounded}({_text(node)})")
    if bare in ("store", "stream") and len(given) == 2:
        for rounded in ("bf16_", "half_"):
            yield _edit("precision", given[1], f"{rounded}({_text(given[1])})")
    if len(given) == 2 and bare not in ADDRESSED and bare not in ("most", "least"):
        yield _edit("swapped operands", arguments, f"({_text(given[1])}, {_text(given[0])})")
    if bare in ("most", "least") and len(given) == 2:
        yield _edit("dropped term", node, f"({_text(given[0])})")
        yield _edit("dropped term", node, f"({_text(given[1])})")


def _assignment(node: Node) -> Iterator[Edit]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    middle = node.child_by_field_name("operator")
    if left is None or right is None or middle is None:
        return
    op, a, b = _text(middle), _text(left), _text(right)
    if op == "+=" and node.parent is not None and node.parent.type == "expression_statement":
        yield _edit("wrong operator", node, f"{a} -= {b}")
        yield _edit("wrong start value", node, f"{a} = {b}")
        for rounded in ("bf16_", "half_"):
            yield _edit("precision", right, f"{rounded}({b})")
    if op == "*=":
        yield _edit("wrong operator", node, f"{a} = {b}")
    if op == "=" and left.type == "subscript_expression":
        for rounded in ("bf16_", "half_"):
            yield _edit("precision", right, f"{rounded}((float)({b}))")


def _statement(node: Node) -> Iterator[Edit]:
    inner = node.named_children[0] if node.named_children else None
    if inner is None:
        return
    if inner.type == "call_expression" and _text(inner).startswith(("fence", "free")):
        return
    yield _edit("deleted statement", node, ";", f"without {_short(_text(node))}")


def _unary(node: Node) -> Iterator[Edit]:
    if _text(node).startswith("-"):
        yield _edit("wrong operator", node, f"({_text(node.child_by_field_name('argument'))})")


def _conditional(node: Node) -> Iterator[Edit]:
    test, yes, no = (node.child_by_field_name(n) for n in ("condition", "consequence", "alternative"))
    yield _edit("wrong comparison", node, f"({_text(test)} ? {_text(no)} : {_text(yes)})")
    yield _edit("dropped term", node, f"({_text(yes)})")
    yield _edit("dropped term", node, f"({_text(no)})")


def _if(node: Node) -> Iterator[Edit]:
    test = node.child_by_field_name("condition")
    if test is not None:
        yield _edit("wrong comparison", test, "(true)")
        yield _edit("wrong comparison", test, "(false)")


_RULES = {
    "binary_expression": (_binary,),
    "for_statement": (_loop,),
    "update_expression": (_update,),
    "number_literal": (_number,),
    "init_declarator": (_declarator,),
    "declaration": (_declaration,),
    "call_expression": (_call,),
    "assignment_expression": (_assignment,),
    "expression_statement": (_statement,),
    "unary_expression": (_unary,),
    "conditional_expression": (_conditional,),
    "if_statement": (_if,),
}
