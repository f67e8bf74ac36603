"""What the assembler says of each kernel: registers, spills, shared memory. Read from its log; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct


class KernelFacts(Struct, frozen=True):
    """One kernel as compiled. Sizes in bytes; `stack_bytes` and spills a thread, `shared_bytes` static and a block.

    `name` is as the candidate spells it, `lowered` as the binary does.
    """

    name: str
    lowered: str
    registers: int = 0
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    shared_bytes: int = 0
    barriers: int = 0

    def line(self) -> str:
        """For people and prompts."""
        said = f"{self.name}: {self.registers} registers"
        if self.shared_bytes:
            said += f", {self.shared_bytes} bytes of static shared memory"
        if self.spill_store_bytes or self.spill_load_bytes:
            said += f", spills {self.spill_store_bytes} bytes of stores and {self.spill_load_bytes} of loads a thread"
        elif self.stack_bytes:
            said += f", {self.stack_bytes} bytes of stack a thread"
        return said


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")
_CHATTER = re.compile(r"^ptxas (info |\s+\.).*$|^\s+\d+ bytes stack frame, .*$")


def kernel_facts(log: str, lowered: Mapping[str, str]) -> tuple[KernelFacts, ...]:
    """The facts of each kernel in `lowered` (lowered name by name); zeros for what the log does not say."""
    told: dict[str, dict[str, int]] = {}
    facts: dict[str, int] = {}
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            facts = told.setdefault(match[1], {})
        elif match := _STACK.search(line):
            facts.setdefault("stack_bytes", int(match[1]))
            facts.setdefault("spill_store_bytes", int(match[2]))
            facts.setdefault("spill_load_bytes", int(match[3]))
        elif match := _USED.search(line):
            facts["registers"] = int(match[1])
            for name, pattern in (("barriers", _BARRIERS), ("shared_bytes", _SHARED)):
                if more := pattern.search(line):
                    facts[name] = int(more[1])
    return tuple(KernelFacts(name, symbol, **told.get(symbol, {})) for name, symbol in lowered.items())


def without_chatter(log: str) -> str:
    """The log without the assembler's report, which is kept as facts: what is left are warnings and errors."""
    return "\n".join(line for line in log.splitlines() if line.strip() and not _CHATTER.match(line))
