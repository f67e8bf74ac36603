"""One compiler run in a cage: its output by stdout, its complaints by stderr, both into files, under one deadline."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from workbench_engine.sandbox.cage import Cage, prepared
from workbench_engine.sandbox.cgroup import ControlGroup
from workbench_engine.sandbox.level import SandboxLevel


async def compile_caged(
    level: SandboxLevel,
    cage: Cage,
    program: Sequence[str],
    *,
    made: Path,
    log: Path,
    cores: Sequence[int],
    deadline_s: float,
) -> tuple[int, bool]:
    """(exit status, whether it was killed at the deadline). `made` and `log` receive stdout and stderr."""
    group = ControlGroup(cage.limits)
    try:
        with log.open("wb") as log_sink, made.open("wb") as sink:
            with prepared(level, cage, program) as (argv, fds):
                process = await asyncio.create_subprocess_exec(
                    *group.joining(argv),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=sink,
                    stderr=log_sink,
                    env=cage.environment,
                    pass_fds=fds,
                    start_new_session=True,
                )
            late = False
            try:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(process.pid, cores)
                async with asyncio.timeout(deadline_s):
                    code = await process.wait()
            except TimeoutError:
                late, code = True, -1
            finally:
                await _end(process)
    finally:
        group.close()
    return code, late


async def _end(process: asyncio.subprocess.Process) -> None:
    """SIGKILL; with bubblewrap its whole pid namespace goes along. Waits 5 s at most."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(5.0):
            await process.wait()
