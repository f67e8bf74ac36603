"""Source text as styled spans, by Pygments: run in a thread and kept by the caller under the source's hash."""

from __future__ import annotations

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Literal, Name, Operator, Token

from workbench_screens.lines import Line

_STYLES = (
    (Comment.Preproc, "code-directive"),
    (Comment, "code-comment"),
    (Keyword, "code-keyword"),
    (Name.Builtin, "code-name"),
    (Name.Function, "code-name"),
    (Name.Class, "code-name"),
    (Name.Decorator, "code-directive"),
    (Literal.String, "code-string"),
    (Literal.Number, "code-number"),
    (Operator.Word, "code-keyword"),
    (Token, ""),
)


def language_of(text: str) -> str:
    """`python` for a module, `cuda` for device code, `c++` for the rest of the kernels."""
    if "__global__" in text or "__device__" in text:
        return "cuda"
    if any(text.startswith(word) or f"\n{word}" in text for word in ("import ", "from ", "def ", "class ")):
        return "c++" if "#include" in text else "python"
    return "c++"


def colour(text: str) -> list[Line]:
    """One styled line a source line, tabs expanded to 4. Joining the texts gives the source back."""
    source = text.expandtabs(4)
    lexer = get_lexer_by_name(language_of(source), stripnl=False, ensurenl=False)
    lines: list[Line] = [[]]
    for token, value in lexer.get_tokens(source):
        style = next(style for kind, style in _STYLES if token in kind)
        for i, part in enumerate(value.split("\n")):
            if i:
                lines.append([])
            if part:
                lines[-1].append((part, style))
    return lines[: max(1, len(source.splitlines()))]
