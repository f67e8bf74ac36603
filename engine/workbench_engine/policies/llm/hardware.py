"""What a prompt says of the machine: facts that decide how a kernel should be written, read from this machine."""

from __future__ import annotations

from pathlib import Path

from workbench_sessions.events import HostCard

_WORTH_SAYING = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def hardware_facts(host: HostCard, cpuinfo: str, caches: dict[str, str]) -> tuple[str, ...]:
    """Lines for the prompt. No host name: it says nothing about speed. What is not known is left out."""
    facts = [f"Processor: {host.cpu or 'unknown'}, {host.cores} cores"]
    vectors = vector_extensions(cpuinfo)
    if vectors:
        facts.append(f"Vector extensions: {', '.join(vectors)}")
    if caches:
        facts.append("Caches: " + ", ".join(f"{name} {size}" for name, size in caches.items()))
    if host.memory_bytes:
        facts.append(f"Memory: {host.memory_bytes / (1 << 30):.0f} GiB")
    if host.compiler:
        facts.append(f"Compiler: {host.compiler}")
    facts.append(
        "Timing: one thread, pinned to one core, for reference and candidate alike; "
        "the fastest are timed with all cores as well"
    )
    return tuple(facts)


def vector_extensions(cpuinfo: str) -> tuple[str, ...]:
    """Those of the first processor in the text of /proc/cpuinfo that matter to a kernel."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            have = set(value.split())
            return tuple(name for name in _WORTH_SAYING if name in have)
    return ()


def read_caches(folder: Path = _CACHES) -> dict[str, str]:
    """Sizes of the data caches of the first core by level, as the system spells them ("48K")."""
    found: dict[str, str] = {}
    for index in sorted(folder.glob("index*")):
        level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
        if level and size and kind != "Instruction":
            found[f"L{level}"] = size
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
