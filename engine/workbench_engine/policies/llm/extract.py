"""What an answer holds: its three sections and its code, whatever the model put around them. Pure.

Answers come with prose before and after, with several code blocks, with fences missing, and cut off in the middle.
"""

from __future__ import annotations

import ast
import re
from typing import Literal

from msgspec import Struct

Kind = Literal["kernel", "module"]

SECTION_KEPT = 4000
"""Characters of a section that are kept with the answer; the whole text is stored anyway."""


class Block(Struct, frozen=True):
    """A fenced block. `start` is its offset in the answer; `closed` False when the answer ended inside it."""

    language: str
    text: str
    start: int
    closed: bool


class Sections(Struct, frozen=True):
    """The three parts that the prompt asks for; "" where one is missing. `code_start`: where the third begins."""

    analysis: str = ""
    design: str = ""
    code_start: int = 0


class Extracted(Struct, frozen=True):
    """`code` is a whole file, "" when there is none; `problem` then says why, fit for the model to mend."""

    code: str = ""
    problem: str = ""


_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n`]*$", re.MULTILINE)


def blocks(text: str) -> list[Block]:
    """The fenced blocks, in order. A fence is closed by one of the same character, at least as long."""
    found: list[Block] = []
    at = 0
    while (fence := _FENCE.search(text, at)) is not None:
        mark, language = fence.group(1), fence.group(2).lower()
        start = min(fence.end() + 1, len(text))
        close = re.compile(rf"^[ \t]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE).search(text, start)
        if close is None:
            found.append(Block(language, text[start:], start, closed=False))
            break
        found.append(Block(language, text[start : close.start()], start, closed=True))
        at = close.end()
    return found


_HEADINGS = {
    "analysis": r"(?:performance\s+)?analysis",
    "design": r"(?:algorithm(?:ic)?\s+)?design|algorithm",
    "code": r"(?:(?:final|optimi[sz]ed|full|complete)\s+)?(?:code|implementation|changes|patch)",
}
_NAMES = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _HEADINGS.items())
_NUMBER = r"(?:(?:section|part|step)[ \t]+)?(?:\d{1,2}[.):]?[ \t]*)?"
_BOLD = r"(?:\*\*|__)?"
_LINES = (
    # "## 3. Code (C++)": what follows the name does not matter after a mark of a heading.
    rf"^[ \t]*#{{1,6}}[ \t]*{_BOLD}[ \t]*{_NUMBER}{_BOLD}(?:{_NAMES})\b[^\n]{{0,60}}$",
    # "**Code**", "Code:": the name alone on its line.
    rf"^[ \t]*{_BOLD}[ \t]*{_NUMBER}{_BOLD}(?:{_NAMES})[ \t]*{_BOLD}[ \t]*:?[ \t]*{_BOLD}[ \t]*$",
)
_HEADING = tuple(re.compile(line, re.MULTILINE | re.IGNORECASE) for line in _LINES)


def sections(text: str) -> Sections:
    """The sections by their headings, outside of code blocks. Of several headings of one name the first counts."""
    fenced = [(b.start, b.start + len(b.text)) for b in blocks(text)]
    first: dict[str, tuple[int, int]] = {}
    for heading in sorted((h for one in _HEADING for h in one.finditer(text)), key=lambda h: h.start()):
        if any(start <= heading.start() < end for start, end in fenced):
            continue
        name = next(n for n in _HEADINGS if heading.group(n))
        first.setdefault(name, heading.span())
    bounds = sorted(span for span in first.values())

    def body(name: str) -> str:
        if name not in first:
            return ""
        end = next((start for start, _ in bounds if start > first[name][0]), len(text))
        return text[first[name][1] : end].strip()[:SECTION_KEPT]

    code_start = first["code"][1] if "code" in first else 0
    return Sections(body("analysis"), body("design"), code_start)


_ENTRY = {
    "kernel": re.compile(r"\bkernel_run\s*\("),
    "module": re.compile(r"^(?:class\s+ModelNew\b|ModelNew\s*=)", re.MULTILINE),
}
_NEEDED = {
    "kernel": 'extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim)',
    "module": "class ModelNew(nn.Module)",
}


def extract_code(text: str, kind: Kind, cut_off: bool = False) -> Extracted:
    """The candidate's file in an answer. `cut_off`: the answer ended at a token limit.

    Of several blocks with the entry point the last whole one after the code heading is it: models draft first.
    """
    if not text.strip():
        return Extracted(problem="the answer is empty")
    entry = _ENTRY[kind]
    found = blocks(text)
    after = [b for b in found if b.start >= sections(text).code_start]
    holding = [b for b in after if entry.search(b.text)] or [b for b in found if entry.search(b.text)]
    whole = [b for b in holding if is_whole(b.text, kind)]
    if whole:
        return Extracted(tidied(whole[-1].text))
    if holding:
        return Extracted(problem=_unfinished(holding[-1], kind, cut_off))
    if not found:
        bare = unfenced(text, kind)
        if bare:
            return Extracted(bare) if is_whole(bare, kind) else Extracted(problem=_cut(kind))
    if cut_off:
        return Extracted(problem="the answer was cut off before its code; be brief in the first two sections")
    holder = "none of the code blocks" if found else "the answer holds no code block and"
    return Extracted(problem=f"{holder} defines `{_NEEDED[kind]}`; give the whole file in one code block")


def _unfinished(block: Block, kind: Kind, cut_off: bool) -> str:
    if cut_off or not block.closed:
        return _cut(kind)
    return f"the code is not a whole file: {fault(block.text, kind)}"


def _cut(kind: Kind) -> str:
    return f"the answer was cut off inside its code, {_NEEDED[kind]} is not complete; write a shorter file"


def tidied(code: str) -> str:
    """Without blank lines around, with one newline at the end."""
    return code.strip("\n").rstrip() + "\n"


def is_whole(code: str, kind: Kind) -> bool:
    """Whether a file is complete as far as can be told without a compiler."""
    return not fault(code, kind)


def fault(code: str, kind: Kind) -> str:
    """Why a file cannot be complete, "" when it may be."""
    if not _ENTRY[kind].search(code):
        return f"it does not define `{_NEEDED[kind]}`"
    if kind == "module":
        try:
            ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
            return f"{line}{getattr(error, 'msg', None) or error}"
        return ""
    return unbalanced(code) or ("" if _BODY.search(code) else "kernel_run has no body")


_BODY = re.compile(r"\bkernel_run\s*\([^()]*\)\s*(?:noexcept\s*)?(?://[^\n]*\s*|/\*.*?\*/\s*)*\{", re.DOTALL)
_QUIET = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|R\"([^()\\\s]{0,16})\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
_PAIRS = {")": "(", "]": "[", "}": "{"}


def unbalanced(code: str) -> str:
    """What brackets of C++ are left open or closed too often, "" when none; comments and literals do not count."""
    # Digit separators (1'000) look like character literals.
    plain = _QUIET.sub(lambda m: "\n" * m.group().count("\n"), re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", code))
    open_: list[tuple[str, int]] = []
    for number, line in enumerate(_first_branches(plain.split("\n")), 1):
        for c in line:
            if c in "([{":
                open_.append((c, number))
            elif c in _PAIRS:
                if not open_ or open_[-1][0] != _PAIRS[c]:
                    return f"line {number}: `{c}` closes nothing"
                open_.pop()
    return f"`{open_[-1][0]}` of line {open_[-1][1]} is never closed" if open_ else ""


def _first_branches(lines: list[str]) -> list[str]:
    """The lines with the second and later branches of `#if` emptied: each branch may open what all close together."""
    taken: list[bool] = []
    kept: list[str] = []
    for line in lines:
        directive = _DIRECTIVE.match(line)
        word = directive.group(1) if directive else ""
        if word.startswith("if"):
            taken.append(True)
        elif word in ("else", "elif") and taken:
            taken[-1] = False
        elif word == "endif" and taken:
            taken.pop()
        kept.append(line if all(taken) and not word else "")
    return kept


_DIRECTIVE = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b")
_STARTS = {
    "kernel": re.compile(
        r"^(?://\s*flags:|#\s*(?:include|define|pragma)\b|extern\s+\"C\"|static\s|namespace\b|template\b|using\b|typedef\b)"
    ),
    "module": re.compile(r"^(?:import\s+\w|from\s+[\w.]+\s+import\b|class\s+\w|@\w)"),
}


def unfenced(text: str, kind: Kind) -> str:
    """A file that stands in the answer without fences: from its first line of code to its last; "" when none does."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if _STARTS[kind].match(line)]
    if not starts or not _ENTRY[kind].search(text):
        return ""
    body = lines[starts[0] :]
    if kind == "kernel":
        ends = [i for i, line in enumerate(body) if line.rstrip().endswith("}") or line.rstrip().endswith("};")]
        return tidied("\n".join(body[: ends[-1] + 1])) if ends else tidied("\n".join(body))
    # Prose after Python code shows as lines at the left margin that do not parse.
    for end in range(len(body), max(0, len(body) - 60), -1):
        candidate = "\n".join(body[:end])
        if _ENTRY[kind].search(candidate) and is_whole(candidate, kind):
            return tidied(candidate)
    return tidied("\n".join(body))
