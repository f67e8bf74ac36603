"""How much of a model's and an evaluator's speed reaches the search: this engine, OpenEvolve and ShinkaEvolve.

    python tests/benchmarks/llm_throughput.py [--candidates 300] [--at-once 16] [--markdown] [--only NAME ...]

A stand-in endpoint on this machine answers every request after `--latency` seconds, `--at-once` at most together,
with a candidate nobody sent before; the evaluator sleeps for `--evaluation` seconds. Neither works, so whatever a run
takes beyond the floor is the engine's own. The engines run one after the other, each as a user would start it, in
processes of its own; the other two are installed from PyPI into environments of their own in a temporary folder
(`--environments FOLDER` keeps and reuses them).

The floor: every place at the endpoint always taken, then the last evaluation. *Overhead* is what a candidate costs
beyond it, as seconds of one place at the endpoint: (seconds - floor) * at_once / candidates. "run" counts from the
start of the process to its end, "search" from the first request to the last evaluation. CPU is that of the whole
process tree over the run. Candidates are counted by the evaluator, requests by the endpoint.

`--only` also takes `openevolve-16` (16 workers that ask and evaluate in turn, instead of the 20 that keep 16 requests
open) and `shinka-released` (with the limit of threads a core that the released runner sets itself).
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.throughput.answers import answer
from tests.benchmarks.throughput.endpoint import Endpoint
from tests.benchmarks.throughput.systems import PACKAGES, STARTS, Load, environment, own_python, start

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: what an engine leaves behind comes to us, and its CPU time is counted."""


class Measured(Struct, frozen=True):
    """One engine's run. Durations in seconds; `overhead`, `cpu` a candidate."""

    name: str
    version: str
    settings: str
    candidates: int
    requests: int
    streamed: int
    most_at_once: int
    mean_at_once: float
    run_s: float
    search_s: float
    floor_s: float
    run_per_minute: float
    search_per_minute: float
    run_overhead_s: float
    search_overhead_s: float
    cpu_s: float
    exit_code: int


def install(name: str, folder: Path) -> Path:
    """The interpreter of an environment with the package; made when it is not there."""
    python = folder / name / "bin" / "python"
    if not python.exists():
        print(f"installing {PACKAGES[name]} ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", PACKAGES[name]], check=True, stdout=sys.stderr)
    return python


def version(name: str, python: Path) -> str:
    """As installed, with the version of the client that it asks with."""
    package = PACKAGES[name].partition("==")[0] if name in PACKAGES else "kernel-workbench"
    code = f"from importlib.metadata import version as v; print(v({package!r}), 'openai', v('openai'))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


async def measure(name: str, load: Load, python: Path, folder: Path, patience_s: float) -> Measured:
    package = name.partition("-")[0]
    endpoint = Endpoint(lambda body, number: answer(package, body, number), load.latency_s, load.at_once)
    await endpoint.start()
    given = start(name, load, endpoint.base_url, python, folder)
    tally = folder / "tally"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin_s = time.monotonic()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            given.command,
            env=environment(load, tally, folder),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            await asyncio.wait_for(asyncio.to_thread(process.wait), patience_s)
        except TimeoutError:
            os.killpg(process.pid, 9)
            process.wait()
    end_s = time.monotonic()
    _reap()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    await endpoint.stop()
    lines = [float(line.split()[0]) for line in tally.read_text().splitlines()] if tally.exists() else []
    count = max(0, len(lines) - given.extra)
    run_s, search_s = end_s - begin_s, max(lines, default=end_s) - (endpoint.first_s or begin_s)
    each, places = max(1, count), load.at_once / max(1, count)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    floor_s = msgspec.structs.replace(load, candidates=each).floor_s
    return Measured(
        name=name,
        version=version(package, python),
        settings=given.settings,
        candidates=count,
        requests=endpoint.requests,
        streamed=endpoint.streamed,
        most_at_once=endpoint.most,
        mean_at_once=endpoint.mean,
        run_s=run_s,
        search_s=search_s,
        floor_s=floor_s,
        run_per_minute=60.0 * count / run_s,
        search_per_minute=60.0 * count / search_s,
        run_overhead_s=(run_s - floor_s) * places,
        search_overhead_s=(search_s - floor_s) * places,
        cpu_s=cpu_s / each,
        exit_code=process.returncode,
    )


def _reap() -> None:
    """Takes in what an engine left behind and has ended, so that its CPU time counts."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


HEAD = (
    "engine",
    "version",
    "candidates",
    "requests",
    "most/mean at once",
    "run s",
    "search s",
    "cand/min run",
    "cand/min search",
    "overhead ms run",
    "overhead ms search",
    "CPU ms",
)


def row(m: Measured) -> tuple[str, ...]:
    return (
        m.name,
        m.version,
        str(m.candidates),
        str(m.requests),
        f"{m.most_at_once}/{m.mean_at_once:.1f}",
        f"{m.run_s:.1f}",
        f"{m.search_s:.1f}",
        f"{m.run_per_minute:.0f}",
        f"{m.search_per_minute:.0f}",
        f"{1e3 * m.run_overhead_s:.0f}",
        f"{1e3 * m.search_overhead_s:.0f}",
        f"{1e3 * m.cpu_s:.1f}",
    )


def table(found: list[Measured], load: Load, markdown: bool) -> str:
    rows = [HEAD, *(row(m) for m in found)]
    if markdown:
        lines = ["| " + " | ".join(r) + " |" for r in rows]
        lines.insert(1, "|" + "---|" * len(HEAD))
    else:
        wide = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(r, wide, strict=True)).rstrip() for r in rows]
    rate = 60.0 * load.candidates / load.floor_s
    lines += [
        "",
        f"{load.candidates} candidates, {load.at_once} requests at once, {load.latency_s:g} s an answer, "
        f"{load.evaluation_s:g} s an evaluation: floor {load.floor_s:.1f} s, {rate:.0f} candidates a minute. "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, load average {os.getloadavg()[0]:.1f}.",
    ]
    ours = next((m for m in found if m.name == "workbench"), None)
    others = [m for m in found if m.name != "workbench"]
    if ours is not None and others:
        best = max(others, key=lambda m: m.run_per_minute)
        lines.append(
            f"workbench against the better of the others ({best.name}): {ours.run_per_minute / best.run_per_minute:.2f}"
            f"x candidates a minute over the run, {ours.search_per_minute / best.search_per_minute:.2f}x over the "
            f"search, {ours.cpu_s / best.cpu_s:.2f}x the CPU time and "
            f"{ours.run_overhead_s / best.run_overhead_s:.2f}x the overhead a candidate. "
            f"No engine can be more than {rate / best.run_per_minute:.2f}x as fast as {best.name}: that is the floor."
        )
    lines += [f"{m.name}: {m.settings}" for m in found]
    lines += [f"{m.name}: EXIT CODE {m.exit_code}" for m in found if m.exit_code]
    return "\n".join(lines)


async def run(given: argparse.Namespace, folder: Path) -> list[Measured]:
    load = Load(given.candidates, given.at_once, given.latency, given.evaluation)
    environments = given.environments or folder / "environments"
    environments.mkdir(parents=True, exist_ok=True)
    needed = [(name, name.partition("-")[0]) for name in given.only]
    pythons = {p: own_python() if p == "workbench" else install(p, environments) for _, p in needed}
    found = []
    for name, package in needed:
        print(f"{name} ...", file=sys.stderr, flush=True)
        place = folder / name
        place.mkdir()
        found.append(await measure(name, load, pythons[package], place, given.patience))
    print(table(found, load, given.markdown))
    if given.json is not None:
        as_json: Any = msgspec.to_builtins(found)
        given.json.write_text(json.dumps(as_json, indent=2) + "\n")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=300)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--evaluation", type=float, default=0.2)
    parser.add_argument("--only", nargs="+", choices=list(STARTS), default=["workbench", "openevolve", "shinka"])
    parser.add_argument("--patience", type=float, default=600.0, help="seconds after which an engine is ended")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    parser.add_argument("--environments", type=Path, default=None, metavar="FOLDER")
    parser.add_argument("--keep", action="store_true", help="keep what the engines wrote, and say where")
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    folder = Path(tempfile.mkdtemp(prefix="throughput-"))
    try:
        found = asyncio.run(run(given, folder))
    finally:
        if given.keep:
            print(folder, file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if all(m.exit_code == 0 and m.candidates > 0 for m in found) else 1


if __name__ == "__main__":
    sys.exit(main())
