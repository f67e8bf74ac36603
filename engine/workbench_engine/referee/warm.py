"""Workers started before they are needed: one candidate each, then gone. Starting costs no time on the clock's core."""

from __future__ import annotations

from workbench_engine.referee.worker_process import Worker, kernel_worker, module_worker
from workbench_engine.sandbox.level import SandboxLevel


class WarmWorkers:
    """Keeps one spare of each kind in use; refilled between candidates."""

    def __init__(self, level: SandboxLevel, cores: list[int], modules: bool) -> None:
        self._level = level
        self._cores = cores
        self._spare: dict[str, Worker | None] = {"kernel": kernel_worker(level, cores, 1)}
        if modules:
            self._spare["module"] = module_worker(level, cores, 1)

    def take(self, kind: str, threads: int = 1) -> Worker:
        """A fresh worker of `kind` ("kernel" or "module"); with several threads always started anew."""
        if threads == 1:
            spare = self._spare.get(kind)
            self._spare[kind] = None
            if spare is not None:
                if spare.process.alive():
                    return spare
                spare.close()
        return self._start(kind, threads)

    def refill(self) -> None:
        for kind, spare in self._spare.items():
            if spare is None:
                self._spare[kind] = self._start(kind, 1)

    def _start(self, kind: str, threads: int) -> Worker:
        start = kernel_worker if kind == "kernel" else module_worker
        return start(self._level, self._cores, threads)

    def close(self) -> None:
        for spare in self._spare.values():
            if spare is not None:
                spare.close()
