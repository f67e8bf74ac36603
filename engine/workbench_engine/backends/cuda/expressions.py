"""Sizes as arithmetic over the named dims of a case: `4 * cols`, `ceil_div(rows, 8)`, `min(cols, 1024)`.

A candidate writes them and the engine evaluates them, so there is no `eval`: a small grammar, read into frozen structs,
with caps on length, nesting and the size of every value on the way.

    comparison  = sum [ ("==" | "!=" | "<=" | ">=" | "<" | ">") sum ]        1 or 0
    sum         = product { ("+" | "-") product }
    product     = unary { ("*" | "//" | "%" | "/") unary }                   "/" only where a real number is wanted
    unary       = "-" unary | number | name | "(" comparison ")"
                | ("min" | "max" | "ceil_div") "(" comparison { "," comparison } ")"

`//` and `%` round towards minus infinity, as in Python; `ceil_div` towards plus infinity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from msgspec import Struct

LONGEST = 400
DEEPEST = 40
LARGEST = 2**63 - 1
OPERATORS = ("+", "-", "*", "//", "%", "/", "==", "!=", "<=", ">=", "<", ">")
FUNCTIONS = {"min": (1, 16), "max": (1, 16), "ceil_div": (2, 2)}
"""Least and greatest number of arguments."""


class ExpressionError(Exception):
    """An expression that cannot be read or evaluated. `str()` says what, where in it, and what to do."""


class Number(Struct, frozen=True, tag="number"):
    value: int | float


class Name(Struct, frozen=True, tag="name"):
    """A dim of the case."""

    name: str


class Negative(Struct, frozen=True, tag="negative"):
    of: Expression


class Binary(Struct, frozen=True, tag="binary"):
    """`operator` is one of `OPERATORS`."""

    operator: str
    left: Expression
    right: Expression


class Call(Struct, frozen=True, tag="call"):
    """`function` is one of `FUNCTIONS`."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Number | Name | Negative | Binary | Call

_TOKEN = re.compile(
    r"\s*(?:(\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)|(\d+)|([A-Za-z_]\w*)|(//|[=!<>]=|[-+*%/()<>,]))"
)


class _Token(Struct, frozen=True):
    kind: str
    text: str
    at: int


def _tokens(text: str) -> list[_Token]:
    found, position = [], 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise ExpressionError(
                f"{text!r}, column {start + 1}: {text[start]!r} means nothing here; numbers, dims, "
                f"+ - * // % and {', '.join(FUNCTIONS)} are known"
            )
        kind = ("real", "whole", "name", "sign")[(match.lastindex or 1) - 1]
        found.append(_Token(kind, match[match.lastindex or 1], match.start(match.lastindex or 1)))
        position = match.end()
    return [*found, _Token("end", "", end)]


class _Parser:
    """One pass over the tokens by recursive descent; `_depth` bounds the recursion."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._position = 0
        self._depth = 0

    def whole(self) -> Expression:
        found = self._comparison()
        if self._next.kind != "end":
            raise self._wrong("an operator or the end is expected")
        return found

    @property
    def _next(self) -> _Token:
        return self._tokens[self._position]

    def _wrong(self, wanted: str) -> ExpressionError:
        met = repr(self._next.text) if self._next.kind != "end" else "the end"
        return ExpressionError(f"{self._text!r}, column {self._next.at + 1}: {wanted}, not {met}")

    def _took(self, *signs: str) -> str:
        token = self._next
        if token.kind == "sign" and token.text in signs:
            self._position += 1
            return token.text
        return ""

    def _comparison(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(f"{self._text[:60]!r}…: nested more than {DEEPEST} deep; simplify it")
        left = self._sum()
        if sign := self._took("==", "!=", "<=", ">=", "<", ">"):
            left = Binary(sign, left, self._sum())
        self._depth -= 1
        return left

    def _sum(self) -> Expression:
        left = self._product()
        while sign := self._took("+", "-"):
            left = Binary(sign, left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._unary()
        while sign := self._took("*", "//", "%", "/"):
            left = Binary(sign, left, self._unary())
        return left

    def _unary(self) -> Expression:
        minus = 0
        while self._took("-"):
            minus += 1
        found = self._atom()
        return Negative(found) if minus % 2 else found

    def _atom(self) -> Expression:
        token = self._next
        if token.kind in ("whole", "real"):
            self._position += 1
            return Number(int(token.text) if token.kind == "whole" else float(token.text))
        if token.kind == "name":
            self._position += 1
            return self._call(token) if token.text in FUNCTIONS else Name(token.text)
        if self._took("("):
            found = self._comparison()
            if not self._took(")"):
                raise self._wrong("')' is expected")
            return found
        raise self._wrong("a number, a dim or '(' is expected")

    def _call(self, name: _Token) -> Expression:
        if not self._took("("):
            raise self._wrong(f"'(' is expected after {name.text}")
        arguments = [self._comparison()]
        while self._took(","):
            arguments.append(self._comparison())
        if not self._took(")"):
            raise self._wrong("',' or ')' is expected")
        least, most = FUNCTIONS[name.text]
        if not least <= len(arguments) <= most:
            raise ExpressionError(
                f"{self._text!r}, column {name.at + 1}: {name.text} takes "
                f"{least if least == most else f'{least} to {most}'} arguments, not {len(arguments)}"
            )
        return Call(name.text, tuple(arguments))


def parse(text: str | int | float) -> Expression:
    """Read one expression; a bare number is one too. Raises ExpressionError."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ExpressionError(f"{text!r} is no expression; write a number or a text such as '4 * cols'")
    if not isinstance(text, str):
        return Negative(Number(-text)) if text < 0 else Number(text)
    if len(text) > LONGEST:
        raise ExpressionError(f"{text[:60]!r}…: longer than {LONGEST} characters; simplify it")
    return _Parser(text).whole()


def names_in(expression: Expression) -> frozenset[str]:
    """The dims that an expression needs."""
    match expression:
        case Name(name):
            return frozenset((name,))
        case Negative(of):
            return names_in(of)
        case Binary(_, left, right):
            return names_in(left) | names_in(right)
        case Call(_, arguments):
            return frozenset().union(*map(names_in, arguments))
    return frozenset()


def whole(expression: Expression, dims: Mapping[str, int]) -> int:
    """The value as an integer. Raises ExpressionError: an unknown dim, a real number, a zero divisor, a value beyond
    64 bits."""
    value = _value(expression, dims, fractions=False)
    assert isinstance(value, int)
    return value


def real(expression: Expression, dims: Mapping[str, int]) -> float:
    """The value as a real number; "/" divides here. Raises ExpressionError as `whole` does."""
    return float(_value(expression, dims, fractions=True))


def _value(expression: Expression, dims: Mapping[str, int], fractions: bool) -> int | float:
    match expression:
        case Number(value):
            if isinstance(value, float) and not fractions:
                raise ExpressionError(f"{show(expression)}: a whole number is wanted here; use // and ceil_div")
            return _bounded(value, expression)
        case Name(name):
            if name not in dims:
                raise ExpressionError(f"no dim is called {name!r}; known: {', '.join(dims) or 'none'}")
            return dims[name]
        case Negative(of):
            return -_value(of, dims, fractions)
        case Binary(operator, left, right):
            if operator == "/" and not fractions:
                raise ExpressionError(f"{show(expression)}: '/' gives a fraction; use // or ceil_div for sizes")
            a, b = _value(left, dims, fractions), _value(right, dims, fractions)
            if operator in ("/", "//", "%") and b == 0:
                raise ExpressionError(f"{show(expression)}: divides by zero with {_shown(dims)}")
            return _bounded(_operate(operator, a, b), expression)
        case Call(function, arguments):
            values = [_value(argument, dims, fractions) for argument in arguments]
            if function == "ceil_div":
                if values[1] == 0:
                    raise ExpressionError(f"{show(expression)}: divides by zero with {_shown(dims)}")
                return _bounded(-(-values[0] // values[1]), expression)
            return min(values) if function == "min" else max(values)
    raise AssertionError(expression)


def _operate(operator: str, a: int | float, b: int | float) -> int | float:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b
        case "//":
            return a // b
        case "%":
            return a % b
    return int({"==": a == b, "!=": a != b, "<=": a <= b, ">=": a >= b, "<": a < b, ">": a > b}[operator])


def _bounded(value: int | float, expression: Expression) -> int | float:
    if not (math.isfinite(value) if isinstance(value, float) else -LARGEST <= value <= LARGEST):
        raise ExpressionError(f"{show(expression)}: the value does not fit into 64 bits")
    return value


def _shown(dims: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in dims.items()) or "no dims"


def show(expression: Expression) -> str:
    """The expression as text, every operation in parentheses; `parse` reads it back to an equal one."""
    match expression:
        case Number(value):
            return repr(value)
        case Name(name):
            return name
        case Negative(of):
            return f"-{show(of)}"
        case Binary(operator, left, right):
            return f"({show(left)} {operator} {show(right)})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(show, arguments))})"
    raise AssertionError(expression)
