"""The duplicate gate: two sources that differ only in comments and white space are one candidate."""

from __future__ import annotations

import hashlib
import io
import re
import tokenize

_FLAGS = re.compile(r"\A// flags:([^\n]*)\n")
_CPP = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<keep>R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<directive>^[ \t]*\#[^\n]*)"""
    r"""|(?P<token>\w+|[-+*%&|^<>=!]+|/=?|\S)"""
    r"""|(?P<space>\s+)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)


def normalised(text: str, kind: str = "kernel") -> str:
    """The source without comments and with canonical white space; the flags line of a kernel stays."""
    return _python(text) if kind == "module" else _cpp(text)


def fingerprint(text: str, kind: str = "kernel") -> str:
    """sha256 of the normalised source, hexadecimal: equal for duplicates."""
    return hashlib.sha256(f"{kind}\0{normalised(text, kind)}".encode()).hexdigest()


def _cpp(text: str) -> str:
    flags = _FLAGS.match(text)
    head = "flags " + " ".join(flags[1].split()) + "\n" if flags else ""
    body = text[flags.end() :] if flags else text
    parts: list[str] = []
    for match in _CPP.finditer(body.replace("\\\n", " ")):
        if match["directive"] is not None:
            line = re.sub(r"//.*|/\*.*?\*/", " ", match["directive"])
            parts.append("\n" + " ".join(line.split()) + "\n")
        elif match["keep"] is not None or match["token"] is not None:
            parts.append(match[0])
    # Tokens are joined by one blank, so "a+b" and "a + b" are equal and "int x" and "intx" are not.
    return head + " ".join(parts)


def _python(text: str) -> str:
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER}
    layout = {tokenize.NEWLINE: "\n", tokenize.INDENT: "{", tokenize.DEDENT: "}"}
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        # Not Python: the static gate says so; here it is only itself.
        return text
    return " ".join(layout.get(t.type, t.string) for t in tokens if t.type not in skip)
