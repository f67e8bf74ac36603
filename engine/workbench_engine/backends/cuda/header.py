"""One `.cu` file, read: flags, compiler, and the launches that its `/* workbench ... */` comment declares.

The text stays one file that a person can edit and any CUDA tool can compile. Pure: nothing is compiled or evaluated.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Literal

from msgspec import Struct

from workbench_engine.backends.cuda import flags as allowed
from workbench_engine.backends.cuda.launch import LaunchSpec
from workbench_engine.backends.cuda.reading import Misread, read_spec

Compiler = Literal["nvrtc", "nvcc"]
LONGEST = 400_000
"""Characters of a file."""

_BLOCK = re.compile(r"/\*[ \t]*workbench\b[ \t]*\r?\n(.*?)\*/", re.DOTALL)
_REMEDY = "docs/cuda-kernels.md has an example"


class HeaderError(Exception):
    """A file that does not keep the contract. `str()` is one line: the place, what is wrong, what to do."""


class CudaFile(Struct, frozen=True):
    """`text` is the whole file, which is what the compiler gets. `compiler` "" leaves the choice to the builder."""

    text: str
    flags: tuple[str, ...]
    compiler: Compiler | Literal[""]
    spec: LaunchSpec


def read_file(text: str) -> CudaFile:
    """Read a candidate. Raises HeaderError."""
    if len(text) > LONGEST:
        raise HeaderError(f"the file has {len(text)} characters; at most {LONGEST} are read")
    directives = _directives(text)
    chosen = directives.get("compiler", ("", 0))
    if chosen[0] not in ("", "nvrtc", "nvcc"):
        raise HeaderError(f"line {chosen[1]}: no compiler is called {chosen[0]!r}; write nvrtc or nvcc")
    asked, line = directives.get("flags", (" ".join(allowed.DEFAULT_FLAGS), 0))
    flags = tuple(asked.split())
    if bad := allowed.refused(flags):
        raise HeaderError(f"line {line}: flag not allowed: {' '.join(bad)}; allowed: {allowed.SUMMARY}")
    compiler: Compiler | Literal[""] = "nvcc" if chosen[0] == "nvcc" else "nvrtc" if chosen[0] == "nvrtc" else ""
    return CudaFile(text, flags, compiler, _spec(text))


def _directives(text: str) -> dict[str, tuple[str, int]]:
    """`// key: value` of the comment lines at the head of the file, with the line each stands in."""
    found: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("//"):
            break
        if match := re.fullmatch(r"//\s*(flags|compiler):(.*)", line):
            found.setdefault(match[1], (match[2].strip(), number))
    return found


def _spec(text: str) -> LaunchSpec:
    blocks = list(_BLOCK.finditer(text))
    if not blocks:
        raise HeaderError(f"the file declares no launch: it needs a comment `/* workbench` … `*/` in TOML; {_REMEDY}")
    first = text.count("\n", 0, blocks[0].start(1)) + 1
    if len(blocks) > 1:
        second = text.count("\n", 0, blocks[1].start()) + 1
        raise HeaderError(f"line {second}: a second `/* workbench` comment; put all launches into the first one")
    body = blocks[0][1].replace("\r\n", "\n")
    try:
        table: dict[str, Any] = tomllib.loads(body)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise HeaderError(_toml_place(str(error), first)) from None
    try:
        return read_spec(table)
    except Misread as error:
        raise HeaderError(f"line {first + _line_of(body, error)}: {error}") from None


def _toml_place(said: str, first: int) -> str:
    """tomllib counts lines from the head of the comment; a person counts from the head of the file."""
    match = re.search(r"\s*\(at line (\d+), column (\d+)\)", said)
    line = first + int(match[1]) - 1 if match else first
    column = f", column {match[2]}" if match else ""
    what = re.sub(r"\s*\(at .*\)$", "", said)
    return f"line {line}{column}: the workbench comment is no TOML: {what}; {_REMEDY}"


def _line_of(body: str, error: Misread) -> int:
    """Lines below the comment's first at which the key of the error stands; 0 when it cannot be told."""
    tables = [match.start() for match in re.finditer(r"^\s*\[\[\s*launch\s*\]\]", body, re.MULTILINE)]
    start, end = 0, len(body)
    if error.launch and error.launch <= len(tables):
        start = tables[error.launch - 1]
        end = tables[error.launch] if error.launch < len(tables) else len(body)
    elif not error.launch and tables:
        end = tables[0]
    key = re.compile(rf"^[ \t]*{re.escape(error.key)}\b", re.MULTILINE).search(body, start, end) if error.key else None
    place = key.start() if key else start
    if not key and start:
        place = body.index("[", start)
    return body.count("\n", 0, place)
