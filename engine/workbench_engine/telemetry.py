"""What the devices say of themselves, read a few times a second. The CPU here; other kinds have the same shape."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from workbench_engine.host import meminfo
from workbench_sessions.events import DeviceSeen, Event, TelemetrySampled

MOST_DEVICES = 8
"""More than anybody looks at; each reading is an event."""

Times = dict[str, tuple[int, int]]
"""By core ("cpu" = all, "cpu0", ...): (busy, total) in clock ticks since boot."""


def cpu_times(stat: str) -> Times:
    """The cpu lines of /proc/stat. Waiting for a disk counts as idle; guest time is part of user time already."""
    found: Times = {}
    for line in stat.splitlines():
        parts = line.split()
        if not parts or not parts[0].startswith("cpu"):
            continue
        ticks = [int(x) for x in parts[1:9]]
        total = sum(ticks)
        found[parts[0]] = (total - ticks[3] - (ticks[4] if len(ticks) > 4 else 0), total)
    return found


def utilisation(before: Times, after: Times, core: str = "cpu") -> float | None:
    """Busy share of the time between two readings, in 0..1; None when no tick passed."""
    if core not in before or core not in after:
        return None
    busy, total = (b - a for a, b in zip(before[core], after[core], strict=True))
    return min(1.0, max(0.0, busy / total)) if total > 0 else None


def clock_hz(cpuinfo: str) -> dict[int, float]:
    """Clock of each core in the text of /proc/cpuinfo, Hz."""
    found: dict[int, float] = {}
    core = -1
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        try:
            if key.strip() == "processor":
                core = int(value)
            elif key.strip() == "cpu MHz":
                found[core] = float(value) * 1e6
        except ValueError:
            continue
    return found


class CpuSampler:
    """Reads cores: utilisation since the last reading, clock; memory, load and heat are those of the whole machine."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._devices: dict[str, int] = {}
        self._before = cpu_times(self._read("proc/stat"))
        self._thermometers = self._find_thermometers()

    def watch(self, seen: DeviceSeen) -> None:
        """Adds a device that is one core, `cpuN`. The first `MOST_DEVICES` are read, cores used for timing first."""
        number = seen.device.removeprefix("cpu")
        if seen.kind == "cpu" and number.isdigit() and len(self._devices) < MOST_DEVICES:
            self._devices[seen.device] = int(number)

    def sample(self) -> list[TelemetrySampled]:
        """One reading of every watched device; what this machine does not tell is None."""
        if not self._devices:
            return []
        before, self._before = self._before, cpu_times(self._read("proc/stat"))
        memory = meminfo(self._read("proc/meminfo"))
        total, free = memory.get("MemTotal"), memory.get("MemAvailable")
        load = self._read("proc/loadavg").split()
        clocks = clock_hz(self._read("proc/cpuinfo"))
        heat = self._temperature()
        return [
            TelemetrySampled(
                device=device,
                utilisation=utilisation(before, self._before, f"cpu{core}"),
                memory_used_bytes=total - free if total is not None and free is not None else None,
                memory_total_bytes=total,
                clock_hz=clocks.get(core),
                temperature_c=heat,
                load=float(load[0]) if load else None,
            )
            for device, core in self._devices.items()
        ]

    def _temperature(self) -> float | None:
        """The hottest thermometer, degrees Celsius."""
        degrees = []
        for path in self._thermometers:
            text = self._read(path).strip()
            # A sensor without a reading gives 0 or nonsense below it.
            if text.lstrip("-").isdigit() and int(text) > 0:
                degrees.append(int(text) / 1000.0)
        return max(degrees) if degrees else None

    def _find_thermometers(self) -> list[str]:
        found = []
        for zone in sorted((self._root / "sys/class/thermal").glob("thermal_zone*")):
            kind = self._read(f"sys/class/thermal/{zone.name}/type").lower()
            if any(word in kind for word in ("pkg", "cpu", "core", "soc")):
                found.append(f"sys/class/thermal/{zone.name}/temp")
        return found

    def _read(self, path: str) -> str:
        try:
            return (self._root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


async def sample_forever(sampler: CpuSampler, emit: Callable[[Event], None], period_s: float) -> None:
    """Emits one reading of every device each `period_s` seconds."""
    while True:
        await asyncio.sleep(period_s)
        for reading in sampler.sample():
            emit(reading)
