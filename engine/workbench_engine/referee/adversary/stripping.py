"""A candidate's source without what is written for readers only: a judge must not be talked to (catalogue row 37).

Comments, docstrings and strings that stand alone go; so do comments inside C++ that stands in a string. Lexed, not
parsed, so that it works on files that are no longer or not yet right; never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench_engine.referee.advice.cxx_rules import looks_like_cxx

LONGEST_PROSE = 60
"""Characters of a string that is no code which are kept: enough for a name, too little for a plea."""

_CXX = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))"""
    r"""|R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""",
    re.DOTALL,
)
_PYTHON = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?P<string>(?P<prefix>\b[rRbBuUfF]{1,2})?"
    r"(?P<quotes>\"\"\"|'''|\"|')(?P<inside>(?:\\.|(?!(?P=quotes)).)*?)(?:(?P=quotes)|\Z))"
    r"|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<line>\n)|(?P<colon>[:;])|(?P<joined>\\\n)|(?P<space>[ \t\r\f]+)"
    r"|(?P<other>[^\s\#\"'()\[\]{}:;\\]+|\\)",
    re.DOTALL,
)
_FLAGS = re.compile(r"\A// flags:[^\n]*\n")


def without_comments(text: str, kind: str) -> str:
    """The code alone, empty lines gone. A kernel's flags line stays: it is part of what is compiled."""
    if kind == "kernel":
        flags = _FLAGS.match(text)
        head = flags[0] if flags else ""
        return _closed_up(head + cxx_without_comments(text[len(head) :]))
    return _closed_up(python_without_comments(text))


def cxx_without_comments(text: str) -> str:
    """A comment is a blank to the compiler, and here."""
    return _CXX.sub(lambda match: " " if match["comment"] is not None else match[0], text)


def python_without_comments(text: str) -> str:
    """Comments and lone strings gone, strings that are no code cut short."""
    return "".join(_python(list(_PYTHON.finditer(text))))


def _python(tokens: list[re.Match[str]]) -> Iterator[str]:
    depth = 0
    fresh = True
    """Whether a statement could begin here."""
    for number, token in enumerate(tokens):
        kind = token.lastgroup
        if token["comment"] is not None:
            continue
        if token["string"] is not None:
            if fresh and depth == 0 and _ends_statement(tokens, number + 1):
                yield "..."
            else:
                yield _string(token)
            fresh = False
            continue
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(0, depth - 1)
        if kind in ("line", "colon"):
            fresh = depth == 0
        elif kind not in ("space", "joined"):
            fresh = False
        yield token[0]


def _ends_statement(tokens: list[re.Match[str]], at: int) -> bool:
    """Whether nothing but blanks, comments and further strings comes before the end of the statement."""
    for token in tokens[at:]:
        if token.lastgroup == "line" or token[0] == ";":
            return True
        if token["comment"] is None and token["string"] is None and token.lastgroup not in ("space", "joined"):
            return False
    return True


def _string(token: re.Match[str]) -> str:
    inside, quotes = token["inside"], token["quotes"]
    if looks_like_cxx(inside):
        inside = cxx_without_comments(inside)
    elif len(inside) > LONGEST_PROSE:
        inside = inside[:LONGEST_PROSE] + "…"
    return f"{token['prefix'] or ''}{quotes}{inside}{quotes}"


def _closed_up(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line) + "\n"
