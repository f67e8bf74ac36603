"""A small assembler for classic BPF, as far as system-call filters need it.

A program is a list of `struct sock_filter` (linux/filter.h): 16-bit opcode, two 8-bit forward jumps counted in
instructions, a 32-bit constant. The accumulator is the only register used here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from msgspec import Struct

LOAD = 0x20
"""BPF_LD | BPF_W | BPF_ABS: a 32-bit word of seccomp_data at offset k."""
EQUAL, GREATER_OR_EQUAL, ANY_BIT = 0x15, 0x35, 0x45
"""BPF_JMP | BPF_K with BPF_JEQ, BPF_JGE, BPF_JSET."""
RETURN = 0x06

MOST_INSTRUCTIONS = 4096
FARTHEST = 255


class Instruction(Struct, frozen=True):
    code: int
    k: int
    yes: int = 0
    no: int = 0


Program = Sequence[Instruction]


def load(offset: int) -> list[Instruction]:
    return [Instruction(LOAD, offset)]


def end(answer: int) -> list[Instruction]:
    return [Instruction(RETURN, answer)]


def when(test: int, k: int, then: Program) -> list[Instruction]:
    """Run `then` (which must end in a return) if the accumulator passes the test, else go on behind it."""
    if len(then) > FARTHEST:
        raise ValueError(f"a jump over {len(then)} instructions is longer than {FARTHEST}")
    return [Instruction(test, k, 0, len(then)), *then]


def unless(test: int, k: int, then: Program) -> list[Instruction]:
    """Run `then` (which must end in a return) if the accumulator does not pass the test."""
    if len(then) > FARTHEST:
        raise ValueError(f"a jump over {len(then)} instructions is longer than {FARTHEST}")
    return [Instruction(test, k, len(then), 0), *then]


def assemble(program: Program) -> bytes:
    """The bytes that the kernel takes. Raises ValueError when it would refuse them for their length."""
    if not 0 < len(program) <= MOST_INSTRUCTIONS:
        raise ValueError(f"{len(program)} instructions; the kernel takes 1 to {MOST_INSTRUCTIONS}")
    return b"".join(struct.pack("=HBBI", one.code, one.yes, one.no, one.k) for one in program)
