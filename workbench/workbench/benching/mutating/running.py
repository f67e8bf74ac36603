"""Mutation testing of one task after the other: honest candidates first, then mutants until enough were witnessed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import structs

from workbench.benching.mutating.checking import Built, CheckBench
from workbench.benching.mutating.drawing import Honest, drawn, kernels, module
from workbench.benching.mutating.edits import Mutant, difference
from workbench.benching.mutating.results import Results, Tried
from workbench.judging import read_task
from workbench_engine.referee.worker_process import WorkerFailed
from workbench_engine.sandbox.level import SandboxLevel

HONEST_KERNELS = 5
POINTS_TRIED = 40
AHEAD = 2
"""Mutants compiled while another is checked."""

Say = Callable[[str], None]
Keep = Callable[[Results], None]


def quotas(tasks: list[str], count: int) -> dict[str, int]:
    """Witnessed faults asked of each task: `count` spread evenly, the first ones take what is left over."""
    share, rest = divmod(count, len(tasks))
    return {task: share + (number < rest) for number, task in enumerate(tasks)}


def run_task(
    task: str, quota: int, results: Results, level: SandboxLevel, cores: list[int], again: bool, say: Say, keep: Keep
) -> Results:
    """Mutants of one task until `quota` faults were witnessed or none are left; what `results` holds is not repeated.

    `again`: mutants that were caught stay, all others are tried once more. Raises TaskRejected, WorkerFailed.
    """
    if again:
        kept = [t for t in results.tried if t.task != task or t.fate in ("caught", "not built")]
        results = structs.replace(results, tried=kept)
    if _witnessed(results, task) >= quota:
        return results
    with TemporaryDirectory(prefix="workbench-mutants-") as folder:
        bench = CheckBench(level, read_task(task), cores, Path(folder), modules=True)
        try:
            honest = _honest(bench, task, results, say)
            origins = {**results.honest, task: [one.origin for one in honest]}
            results = structs.replace(results, honest=origins)
            originals = {one.origin: one for one in honest}
            built_originals = {one.origin: bench.build(one.kind, one.text) for one in honest}
            have = {t.key for t in results.tried}
            fresh = (m for m in drawn(honest, results.seed) if m.key not in have)
            for mutant, built in _built_ahead(bench, fresh):
                if _witnessed(results, task) >= quota:
                    break
                tried = _try(bench, mutant, built, originals[mutant.origin], built_originals[mutant.origin])
                results = structs.replace(results, tried=[*results.tried, tried])
                keep(results)
                if tried.fate == "survived":
                    say(f"{task}: survived: {mutant.fault}: {mutant.note} ({tried.witness})")
        finally:
            bench.close()
    return results


def _witnessed(results: Results, task: str) -> int:
    return sum(t.task == task and t.counts for t in results.tried)


def _honest(bench: CheckBench, task: str, results: Results, say: Say) -> list[Honest]:
    """Candidates that pass both checks: those of an earlier call, or new ones."""
    known = results.honest.get(task)
    wanted = len([o for o in known if o != "module"]) if known is not None else HONEST_KERNELS
    found: list[Honest] = []
    for tried, one in enumerate(kernels(task, results.seed)):
        if tried >= POINTS_TRIED or len(found) >= wanted:
            break
        if known is not None and one.origin not in known:
            continue
        if known is not None or _passes(bench, one, say):
            found.append(one)
    python = module(task)
    if python is not None and (known is None or "module" in known) and _passes(bench, python, say):
        found.append(python)
    return found


def _passes(bench: CheckBench, one: Honest, say: Say) -> bool:
    built = bench.build(one.kind, one.text)
    if built.fault:
        return False
    said = bench.referee(built)
    if not said.right:
        say(f"{one.task}: {one.origin} is no honest candidate: {said.detail}")
    return said.right


def _built_ahead(bench: CheckBench, mutants: Iterable[Mutant]) -> Iterator[tuple[Mutant, Built]]:
    queue: list[tuple[Mutant, Future[Built]]] = []
    with ThreadPoolExecutor(1) as pool:
        try:
            for mutant in mutants:
                queue.append((mutant, pool.submit(bench.build, mutant.kind, mutant.text)))
                if len(queue) > AHEAD:
                    first, building = queue.pop(0)
                    yield first, building.result()
            for first, building in queue:
                yield first, building.result()
        finally:
            for _, building in queue:
                building.cancel()


def _try(bench: CheckBench, mutant: Mutant, built: Built, original: Honest, honest: Built) -> Tried:
    start = time.monotonic()
    tried = Tried(
        key=mutant.key,
        task=mutant.task,
        origin=mutant.origin,
        kind=mutant.kind,
        fault=mutant.fault,
        note=mutant.note,
        line=mutant.line,
        diff=difference(original.text, mutant.text),
        fate="not built",
        detail=built.fault,
    )
    if built.fault:
        return tried
    said = bench.referee(built)
    if mutant.kind == "module" and said.where == "died" and "Error" in said.detail:
        # A module that raises is no fault that a check has to find.
        return structs.replace(tried, detail=said.detail)
    if said.right:
        try:
            witness = bench.witness(built, honest)
        except WorkerFailed as failed:
            return structs.replace(tried, detail=f"the original fails on the battery: {failed}")
        if witness is None:
            return structs.replace(tried, fate="equivalent", seconds=time.monotonic() - start)
        shown = f"{witness.where}: {witness.factor:.3g}× what rounding explains, at {witness.index}"
        tried = structs.replace(tried, fate="survived", witness=shown)
    else:
        tried = structs.replace(tried, fate="caught", where=said.where, detail=said.detail, witness="the check itself")
    seen = not bench.kernelbench(built).right
    return structs.replace(tried, kernelbench=seen, seconds=time.monotonic() - start)
