"""Compiler flags that a CUDA candidate may ask for; both compilers know all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

BASE_FLAGS = ("-std=c++17",)
DEFAULT_FLAGS: tuple[str, ...] = ()
ALLOWED_FLAGS = re.compile(
    r"--?use_fast_math|--?(ftz|prec-sqrt|prec-div|fmad)=(true|false)|--?extra-device-vectorization"
    r"|--?maxrregcount=[0-9]{1,3}|-std=c\+\+(17|20)|--?restrict"
    r"|-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?"
)
SUMMARY = (
    "-use_fast_math, -ftz=, -prec-sqrt=, -prec-div=, -fmad=, -extra-device-vectorization, -maxrregcount=N, -restrict, "
    "-std=c++17|20, -DNAME[=VALUE]"
)


def refused(flags: Sequence[str]) -> list[str]:
    """Those that are not allowed."""
    return [flag for flag in flags if not ALLOWED_FLAGS.fullmatch(flag)]


def spelled(flags: Sequence[str], arch: str) -> tuple[str, ...]:
    """The options for either compiler: two dashes where it wants them, the language and the target added."""
    own = tuple(f"-{flag}" if re.match(r"-(?![-D]|std=)", flag) else flag for flag in flags)
    standard = () if any(flag.startswith("-std=") for flag in flags) else BASE_FLAGS
    return (*standard, f"-arch={arch}", *own)
