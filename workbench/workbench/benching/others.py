"""What other checks say of the same files: each in a cage and a process of its own."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.benching.refereeing import Other
from workbench.benching.trials import Trial
from workbench.errors import EnvironmentProblem
from workbench.judging import read_task
from workbench_engine.backends.cpu import CompilerMissing, CpuBuilder
from workbench_engine.sandbox.cage import Cage, base_environment, python_environment
from workbench_engine.sandbox.level import SandboxLevel, SandboxUnavailable, probe
from workbench_engine.sandbox.limits import MODULE
from workbench_engine.sandbox.process import CagedProcess

CHECKERS = Path(__file__).parent / "checkers"
INSIDE = "/opt/check"
DEADLINE_S = 90.0


class Checkers:
    """Runs the naive check and KernelBench's. Raises EnvironmentProblem where nothing can be caged."""

    def __init__(self, builds: Path, trust: bool, kernelbench: Path | None) -> None:
        """`kernelbench`: a checkout of its repository."""
        try:
            self._level: SandboxLevel = probe(trust)
            self._builder = CpuBuilder(self._level, builds)
        except (SandboxUnavailable, CompilerMissing) as error:
            raise EnvironmentProblem(str(error)) from None
        self._kernelbench = kernelbench

    def naive(self, trial: Trial, task: str) -> Other:
        """Whether the naive check calls it correct, and the speedup it would report."""
        library = None
        if trial.kind == "kernel":
            built = asyncio.run(self._builder.build(trial.text, [0]))
            if not built.ok:
                return Other(trial.role, trial.name, trial.sha256, None, note=built.feedback)
            library = Path(built.path)
        code, said, note = self._run("naive.py", trial, task, library)
        correct = code == 0
        speedup = said.get("speedup") if correct else None
        number = float(speedup) if isinstance(speedup, (int, float)) else None
        return Other(trial.role, trial.name, trial.sha256, correct, number, note="" if correct else note)

    def kernelbench(self, trial: Trial, task: str) -> Other:
        """KernelBench's static checker and correctness check. Kernels have no form that it reads."""
        assert self._kernelbench is not None
        if trial.kind == "kernel":
            return Other(trial.role, trial.name, trial.sha256, None, note="n/a")
        _, said, note = self._run("kernelbench.py", trial, task, None)
        if "errors" not in said:
            return Other(trial.role, trial.name, trial.sha256, None, note=note or "it could not be run")
        return Other(
            trial.role,
            trial.name,
            trial.sha256,
            said.get("correct"),
            None,
            [str(one) for one in said["errors"]],
            [str(one) for one in said["warnings"]],
            str(said.get("note", "")),
        )

    def _run(
        self, script: str, trial: Trial, task: str, library: Path | None
    ) -> tuple[int | None, dict[str, Any], str]:
        """(exit status, last JSON line, the end of what it printed)."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            shutil.copyfile(CHECKERS / script, folder / script)
            (folder / "task.py").write_text(read_task(task).source)
            candidate = f"candidate{trial.path.suffix}"
            (folder / candidate).write_text(trial.text)
            folder.chmod(0o755)
            mounts = [(str(folder), INSIDE)]
            here = INSIDE if self._level.bwrap else str(folder)
            program = [sys.executable, "-I", f"{here}/{script}"]
            if script == "kernelbench.py":
                source = str((self._kernelbench or Path()).absolute() / "src")
                mounts.append((source, "/opt/kernelbench"))
                program.append("/opt/kernelbench" if self._level.bwrap else source)
            program += [f"{here}/task.py", f"{here}/{candidate}"]
            if library is not None:
                shutil.copyfile(library, folder / "kernel.so")
                program.append(f"{here}/kernel.so")
            return self._caged(mounts, program)

    def _caged(self, mounts: list[tuple[str, str]], program: Sequence[str]) -> tuple[int | None, dict[str, Any], str]:
        cage = Cage(limits=MODULE, readonly=python_environment(), mounts=tuple(mounts), environment=base_environment(1))
        process = CagedProcess(self._level, cage, program)
        try:
            code = process.wait(DEADLINE_S)
            printed = process.output()
        finally:
            process.close()
        said: dict[str, Any] = {}
        for line in printed.splitlines():
            if line.startswith("{"):
                try:
                    said = json.loads(line)
                except json.JSONDecodeError:
                    continue
        ended = "no end" if code is None else f"exit status {code}"
        return code, said, f"{ended}: {printed.strip()[-200:]}" if printed.strip() else ended
