"""Advice on C++ and CUDA: the syntax tree of tree-sitter's CUDA grammar, which is C++ with kernel launches.

Comments and strings are nodes of their own there, so neither can hide code nor be mistaken for it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from workbench_engine.referee.advice.codes import Advice, advice
from workbench_engine.referee.advice.cxx_table import (
    ASSEMBLY,
    IGNORED_STATE,
    KEEPERS,
    MEMORIES,
    METHODS,
    ONLY_TYPES,
    SYMBOLS,
    code_of_bare,
    code_of_qualified,
)

_QUERY = """
(identifier) @name
(type_identifier) @type
(qualified_identifier) @qualified
(field_identifier) @field
(preproc_arg) @macro
(catch_clause) @catch
(declaration) @declaration
(field_declaration) @declaration
(asm_statement) @asm
(gnu_asm_expression) @asm
(attribute_specifier) @attribute
(namespace_alias_definition) @alias
(using_declaration) @using
(function_definition) @function
(call_expression) @call
(init_declarator declarator: (identifier) @variable)
(declaration declarator: (identifier) @variable)
(parameter_declaration declarator: (identifier) @variable)
(pointer_declarator declarator: (identifier) @variable)
(array_declarator declarator: (identifier) @variable)
(reference_declarator (identifier) @variable)
(for_range_loop declarator: (identifier) @variable)
"""
_KIND = re.compile(r"\((\w+)")
_WORD = re.compile(r"[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_ARGUMENTS = re.compile(r"<[^<>]*>")
_HINTS = ("__global__", "#include", "void", "float", "double", "int", "extern", "template", "Tensor", "#define")
_LOOKUPS = frozenset(("dlsym", "dlvsym", "cudaGetDriverEntryPoint", "GetProcAddress"))
_SCOPES = frozenset(("translation_unit", "declaration_list", "linkage_specification", "namespace_definition"))


@functools.cache
def _grammar() -> Language:
    return Language(tree_sitter_cuda.language())


@functools.cache
def _query() -> Query:
    grammar = _grammar()
    # Grammars differ in what they name: a pattern of an unknown node would make the whole query invalid.
    known = [
        line
        for line in _QUERY.splitlines()
        if (kind := _KIND.match(line)) is not None and grammar.id_for_node_kind(kind[1], True)
    ]
    return Query(_grammar(), "\n".join(known))


def looks_like_cxx(text: str) -> bool:
    """A quick look whether a string could be C++ at all."""
    return ("{" in text or "#" in text) and any(hint in text for hint in _HINTS)


def spliced(text: str) -> str:
    """Lines joined where a backslash ends them, as the compiler does first; the number of lines stays."""
    if "\\\n" not in text and "\\\r\n" not in text:
        return text
    out: list[str] = []
    begun: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.endswith("\\"):
            begun.append(line[:-1])
        else:
            out.append("".join(begun) + line + "\n" * len(begun))
            begun = []
    return "\n".join([*out, "".join(begun)] if begun else out)


def read_cxx(text: str) -> tuple[list[Advice], bool]:
    """(advice, whether the text is code: it defines a function or a macro)."""
    tree = Parser(_grammar()).parse(spliced(text).encode("utf-8", "replace"))
    found = QueryCursor(_query()).captures(tree.root_node)
    is_code = bool(found.get("function") or found.get("macro"))
    if is_code and tree.root_node.has_error and "\n" not in text:
        # One line that holds a function's form but does not parse is prose about code.
        is_code = False
    if not is_code and tree.root_node.has_error:
        return [advice("unparsable", 1, "no function in it")], False
    return list(_Reader(found).read()), is_code


class _Reader:
    def __init__(self, found: dict[str, list[Node]]) -> None:
        self._found = found
        self._own = {name for node in found.get("function", ()) if (name := _function_name(node))}
        self._variables = {_text(node) for node in found.get("variable", ())}
        self._aliases = dict(pair for node in found.get("alias", ()) if (pair := _alias(node)) is not None)
        self._opened = [name for node in found.get("using", ()) if (name := _opened(node))]

    def read(self) -> Iterator[Advice]:
        for node in self._found.get("qualified", ()):
            if node.parent is None or node.parent.type != "qualified_identifier":
                yield from self._name(_plain(_text(node)), _line(node))
        for node in (*self._found.get("name", ()), *self._found.get("type", ())):
            if node.parent is None or node.parent.type != "qualified_identifier":
                # `half` is a type; a variable may be called so.
                if node.type == "identifier" and (_text(node) in ONLY_TYPES or self._is_variable(node)):
                    continue
                yield from self._name(_text(node), _line(node))
        for node in self._found.get("field", ()):
            if _text(node) in METHODS and node.parent is not None and _is_called(node.parent):
                yield advice("library", _line(node), f"method {_text(node)}")
        for node in self._found.get("macro", ()):
            yield from self._macro(_text(node), _line(node))
        for node in self._found.get("catch", ()):
            if not _throws(node):
                yield advice("fallback", _line(node), "catch")
        for node in self._found.get("declaration", ()):
            yield from _state(node)
        for node in [*self._found.get("asm", ()), *self._found.get("attribute", ())]:
            yield from self._assembly(node)
        for node in self._found.get("call", ()):
            yield from _lookup(node)

    def _is_variable(self, node: Node) -> bool:
        """A variable may be called `time`; what is called as a function is the function."""
        return _text(node) in self._variables and not _is_called(node)

    def _name(self, name: str, line: int) -> Iterator[Advice]:
        name = name.removeprefix("::")
        first, _, rest = name.partition("::")
        if first in self._aliases:
            name = f"{self._aliases[first]}::{rest}" if rest else self._aliases[first]
        if "::" in name:
            code = code_of_qualified(name)
            if code is None and (last := name.rpartition("::")[2]) not in self._own:
                code = code_of_bare(last) if name.startswith(("std::", "__gnu")) else None
        else:
            code = code_of_bare(name) if name not in self._own else None
            if code is None and name not in self._own:
                code = next((c for space in self._opened if (c := code_of_qualified(f"{space}::{name}"))), None)
                # A whole namespace is judged by its own name, not by every name while it is open.
                if code is not None and not _is_leaf(self._opened, name):
                    code = None
        if code is not None:
            yield advice(code, line, name)

    def _macro(self, text: str, line: int) -> Iterator[Advice]:
        body = _STRING.sub(" ", _COMMENT.sub(" ", text))
        if "##" in body:
            yield advice("hidden-code", line, "## in a macro")
        if body.strip() in ("static", "thread_local", "catch", "try"):
            yield advice("hidden-code", line, f"a macro for {body.strip()}")
        for match in _WORD.finditer(body):
            yield from self._name(re.sub(r"\s+", "", match[0]), line)

    def _assembly(self, node: Node) -> Iterator[Advice]:
        said = " ".join(_STRING.findall(_text(node)))
        for word, code in ASSEMBLY:
            if code is not None and word in said:
                yield advice(code, _line(node), f"assembly {word}")
        for match in _WORD.finditer(said):
            if match[0] in SYMBOLS and match[0] not in ("time", "open", "read", "write", "clock", "signal", "exit"):
                yield from self._name(match[0], _line(node))


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _line(node: Node) -> int:
    return int(node.start_point[0]) + 1


def _plain(name: str) -> str:
    """A qualified name without template arguments, comments and blanks."""
    name = _COMMENT.sub("", name)
    while True:
        shorter = _ARGUMENTS.sub("", name)
        if shorter == name:
            break
        name = shorter
    return re.sub(r"\s+", "", name.partition("<")[0])


def _is_leaf(opened: list[str], name: str) -> bool:
    from workbench_engine.referee.advice.cxx_table import QUALIFIED

    return any(QUALIFIED.get(f"{space}::{name}") is not None for space in opened)


def _function_name(node: Node) -> str:
    """The bare name of a function with a body."""
    one = node.child_by_field_name("declarator")
    while one is not None and one.type not in ("identifier", "field_identifier"):
        one = one.child_by_field_name("declarator") or (
            one.named_children[-1] if one.type in ("reference_declarator", "qualified_identifier") else None
        )
    return _text(one) if one is not None else ""


def _alias(node: Node) -> tuple[str, str] | None:
    names = [_plain(_text(child)) for child in node.named_children if child.type != "comment"]
    return (names[0], names[-1]) if len(names) >= 2 else None


def _opened(node: Node) -> str:
    """`std` of `using namespace std`; "" for `using std::thread`, whose name stands in the file anyway."""
    if not any(child.type == "namespace" for child in node.children):
        return ""
    return _plain(_text(node.named_children[-1])) if node.named_children else ""


def _is_called(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.type == "call_expression" and parent.child_by_field_name("function") == node


def _throws(node: Node) -> bool:
    body = node.child_by_field_name("body")
    statements = [child for child in body.named_children if child.type != "comment"] if body is not None else []
    return bool(statements) and statements[-1].type == "throw_statement"


def _lookup(node: Node) -> Iterator[Advice]:
    """A symbol looked up by a literal name: the string is the call."""
    function = node.child_by_field_name("function")
    arguments = node.child_by_field_name("arguments")
    if function is None or arguments is None or _plain(_text(function)).rpartition("::")[2] not in _LOOKUPS:
        return
    for child in arguments.named_children:
        name = "".join(_STRING.findall(_text(child))).replace('"', "") if "string" in child.type else ""
        code = code_of_bare(name) if name else None
        if code is not None:
            yield advice(code, _line(node), f"{name} by dlsym")


def _state(node: Node) -> Iterator[Advice]:
    """Variables that live on after the call: statics anywhere, and those outside all functions."""
    head = node.child_by_field_name("type")
    if head is None or node.parent is None:
        return
    words = {_text(child) for child in node.children if child.type in ("storage_class_specifier", "type_qualifier")}
    lasting = bool(words & {"static", "thread_local", "__device__", "__managed__"})
    if node.type == "field_declaration":
        lasting = "static" in words
    elif node.parent.type in _SCOPES:
        lasting = True
    if not lasting or words & {"extern", "constexpr", "constinit", "__constant__", "__shared__"}:
        return
    of = _text(head)
    for declarator in node.children_by_field_name("declarator"):
        inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        if inner is None or _is_function(inner):
            continue
        said = _plain(_text(inner).split("[")[0].split("=")[0].lstrip("*& "))
        pointer = inner.type in ("pointer_declarator", "reference_declarator") or "(*" in _text(inner)
        if "const" in words and not (pointer and "const" not in _text(inner)):
            continue
        if any(word in of for word in IGNORED_STATE):
            continue
        if pointer or any(word in of for word in KEEPERS):
            yield advice("cache", _line(node), f"lasting {of.split('<')[0]} {said}")
        elif any(word in of for word in MEMORIES) or inner.type == "array_declarator":
            yield advice("workspace", _line(node), f"lasting {of.split('<')[0]} {said}")
        else:
            yield advice("call-count", _line(node), f"lasting {of.split('<')[0]} {said}")


def _is_function(node: Node) -> bool:
    """A prototype, not a variable; a pointer to a function is a variable."""
    one: Node | None = node
    while one is not None and one.type in ("pointer_declarator", "reference_declarator"):
        one = one.child_by_field_name("declarator") or (one.named_children[-1] if one.named_children else None)
    if one is None or one.type != "function_declarator":
        return False
    inner = one.child_by_field_name("declarator")
    return inner is None or inner.type != "parenthesized_declarator"
