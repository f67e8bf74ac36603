"""One bench on several cores: each core judges its share in a process of its own, the results become one file.

Every process is confined to one core, so that no share times beside the builds of its own; what the shares do to each
other (memory bandwidth, clock) they do to both sides of every pair.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import msgspec

from workbench.benching.refereeing import Refereed, load, save
from workbench.benching.trials import Trial
from workbench.errors import UsageProblem

LOOK_S = 0.5


def shares(trials: Sequence[Trial], count: int) -> list[list[Trial]]:
    """`count` shares of about equal size (fewer when there are fewer trials); trials of a task lie together, because
    each process opens every task of its share. Pure."""
    ordered = sorted(trials, key=lambda t: t.task)
    cuts = [round(i * len(ordered) / count) for i in range(count + 1)]
    return [ordered[a:b] for a, b in itertools.pairwise(cuts) if b > a]


def merged(results: Refereed, others: Sequence[Refereed]) -> Refereed:
    """`results` with the runs of `others` that it lacks. Pure."""
    have = {run.key for run in results.runs}
    runs = list(results.runs)
    sandbox = results.sandbox
    for other in others:
        sandbox = sandbox or other.sandbox
        for run in other.runs:
            if run.key not in have:
                have.add(run.key)
                runs.append(run)
    return msgspec.structs.replace(results, runs=runs, sandbox=sandbox)


def part(output: Path, number: int) -> Path:
    """Where share `number` keeps its results until they are merged."""
    return output.with_name(f"{output.name}.part{number}")


def gather(output: Path, results: Refereed) -> Refereed:
    """Takes in what shares of an earlier, broken off call left behind. Raises UsageProblem as `load`."""
    left = sorted(output.parent.glob(f"{output.name}.part*"))
    kept = merged(results, [load(path, results.profile) for path in left])
    if left:
        save(output, kept)
        for path in left:
            path.unlink()
    return kept


def drive(
    trials: list[Trial],
    repeat: int,
    results: Refereed,
    options: Sequence[str],
    output: Path,
    cores: Sequence[int],
    say: Callable[[str], None],
) -> Refereed:
    """Judge what is missing on `cores`; `options` of the command are handed to each share. What is done is never lost.

    Raises UsageProblem when a share could not work at all.
    """
    results = gather(output, results)
    split = shares(trials, len(cores))
    running: list[tuple[int, subprocess.Popen[bytes], IO[bytes]]] = []
    try:
        for number, (share, core) in enumerate(zip(split, cores, strict=False)):
            mine = part(output, number)
            # What is done already is told to it, so that it does only the rest.
            save(mine, results)
            log: IO[bytes] = mine.with_name(mine.name + ".log").open("wb")
            only = ",".join(f"{t.role}s/{t.name}" for t in share)
            line = [sys.executable, "-m", "workbench", "bench", "referee", "--repeat", str(repeat), "--only", only]
            line += ["--profile", results.profile, "--no-naive", "-o", str(mine), "--json", *options]
            process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=log)
            # Before it has read a line of ours: it finds one core, and so do all processes that come of it.
            os.sched_setaffinity(process.pid, [core])
            running.append((number, process, log))
        _wait(running, output, results, len(trials) * repeat, say)
    finally:
        for _, process, log in running:
            if process.poll() is None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10.0)
            log.close()
    broken = [number for number, process, _ in running if process.returncode not in (0, 1)]
    words = [_last_line(part(output, number)) for number in broken]
    logs = [path.with_name(path.name + ".log") for path in (part(output, n) for n, _, _ in running)]
    for path in logs:
        path.unlink(missing_ok=True)
    results = gather(output, results)
    if broken:
        raise UsageProblem(f"{len(broken)} of {len(running)} shares broke off: {words[0]}; call again to go on")
    return results


def _wait(
    running: list[tuple[int, subprocess.Popen[bytes], IO[bytes]]],
    output: Path,
    results: Refereed,
    total: int,
    say: Callable[[str], None],
) -> None:
    said = -1
    while any(process.poll() is None for _, process, _ in running):
        time.sleep(LOOK_S)
        before = len(results.runs)
        made = before
        for number, _, _ in running:
            with contextlib.suppress(OSError):
                made += part(output, number).read_bytes().count(b'"verdict"') - before
        if made != said:
            said = made
            say(f"{made}/{total} on {len(running)} cores")


def _last_line(path: Path) -> str:
    try:
        lines = path.with_name(path.name + ".log").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    return (lines or ["it said nothing"])[-1][:300]


def usable_cores(jobs: int) -> list[int]:
    """The last `jobs` cores this process may use; core 0 serves interrupts. Raises UsageProblem."""
    cores = sorted(os.sched_getaffinity(0))
    if jobs > len(cores):
        raise UsageProblem(f"--jobs {jobs}: this process may use {len(cores)} cores")
    return cores[-jobs:]
