"""The kernels of a cubin by name: nvcc tells no lowered names, so they are found in the file it makes.

A cubin is an ELF file; a kernel is a function symbol with a bit of its own set. Standard library only and importable by
path: it is mounted into compile cages.
"""

from __future__ import annotations

import ctypes
import re
import struct

SYMBOL_TABLE = 2
FUNCTION = 2
GLOBAL = (1, 2)
"""Bindings that a loader finds: global and weak (what templates become)."""
ENTRY = 0x10
"""Bit of st_other that marks a kernel, a function that can be launched."""


class NotFound(Exception):
    """`str()` is one line: which kernel, what the file has instead, what to do."""


def entries(cubin: bytes) -> list[str]:
    """Mangled names of the kernels in a 64-bit little-endian ELF file. Raises ValueError for anything else."""
    if cubin[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    try:
        return _entries(cubin)
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError(f"broken ELF file ({error})") from None


def _entries(cubin: bytes) -> list[str]:
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count = struct.unpack_from("<HH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + index * size) for index in range(count)]
    found = []
    for section in sections:
        if section[1] != SYMBOL_TABLE or section[9] != 24:
            continue
        names = sections[section[6]]
        for place in range(section[4], section[4] + section[5], 24):
            name, info, other, _, _, _ = struct.unpack_from("<IBBHQQ", cubin, place)
            if info & 15 == FUNCTION and info >> 4 in GLOBAL and other & ENTRY:
                start = names[4] + name
                found.append(cubin[start : cubin.index(b"\0", start)].decode())
    return found


def demangled(name: str) -> str:
    """A C++ name for people; `name` itself when it is none or cannot be told."""
    if not name.startswith("_Z"):
        return name
    try:
        unmangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return name
    unmangle.restype = ctypes.c_void_p
    unmangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    status = ctypes.c_int()
    text = unmangle(name.encode(), None, None, ctypes.addressof(status))
    if not text:
        return name
    try:
        return ctypes.string_at(text).decode()
    finally:
        free = ctypes.CDLL(None).free
        free.argtypes = [ctypes.c_void_p]
        free(text)


def plain(name: str) -> str:
    """A name without what is written in more than one way: blanks, and `(type)` before a template's number."""
    return re.sub(r"\s+", "", re.sub(r"\((?:unsigned |signed )?(?:int|long|short|char|bool|long long)\)", "", name))


def lowered_names(cubin: bytes, expressions: list[str]) -> dict[str, str]:
    """The lowered name of each expression. Raises NotFound, and ValueError as `entries` does."""
    known = entries(cubin)
    readable = {name: _head(demangled(name)) for name in known}
    found = {}
    for expression in expressions:
        wanted = plain(expression)
        fits = [name for name in known if name == expression or readable[name] == wanted]
        if len(fits) != 1:
            there = ", ".join(sorted(readable.values())) or "none"
            raise NotFound(
                f"error: {len(fits)} kernels are called {expression!r}; the file has: {there}; "
                'spell the template arguments as the compiler does, or declare it extern "C"'
            )
        found[expression] = fits[0]
    return found


def _head(signature: str) -> str:
    """`void softmax<float, 4>(float const*)` → `softmax<float,4>`."""
    text = plain(signature)
    depth = 0
    for position, sign in enumerate(text):
        depth += (sign == "<") - (sign == ">")
        if sign == "(" and not depth:
            text = text[:position]
            break
    return text.removeprefix("void")
