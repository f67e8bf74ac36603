"""How much of a model's and an evaluator's speed reaches the search: candidates a minute and overhead a candidate.

    python tests/benchmarks/llm_throughput.py [--candidates 300] [--at-once 16] [--latency 1.0] [--evaluation 0.2]

A stand-in endpoint on this machine answers every request after `latency` seconds with a kernel nobody sent before; a
stand-in evaluator takes `evaluation` seconds. Neither does work, so whatever a run takes longer than the ideal below is
the engine's own. The ideal: every place at the endpoint always taken, the last evaluation at the end.

`--serve PORT` only runs the endpoint, for engines of others: same latency, same texts, until interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.engine.conductor.standin import TASK, StandInExecutor
from tests.engine.llm.server import Exchange, Server, says
from tests.engine.policies.llm.kernels import KERNEL, answer

from workbench_engine.conducting.lifecycle import Engine
from workbench_engine.llm.settings import LlmSettings
from workbench_engine.settings import RunSettings, encode_settings
from workbench_sessions.events import Budget, PromptSent
from workbench_sessions.log import SessionReader, SessionWriter


def slow(latency_s: float):  # type: ignore[no-untyped-def]
    """An endpoint that takes `latency_s` for everything."""
    asked = 0

    async def behave(x: Exchange) -> None:
        nonlocal asked
        asked += 1
        mine = asked
        await asyncio.sleep(latency_s)
        code = f"// number {mine} speedup={1.0 + mine % 97 / 100:.2f}\n{KERNEL.replace('2.0f', f'{mine}.0f')}"
        await says(answer(code), tokens=(1500, 400))(x)

    return behave


def ideal_s(candidates: int, at_once: int, latency_s: float, evaluation_s: float, evaluators: int) -> float:
    """Seconds that no engine can beat: the slower of the two queues, plus what one candidate takes at the other end."""
    asking = math.ceil(candidates / at_once) * latency_s + evaluation_s
    judging = latency_s + math.ceil(candidates / evaluators) * evaluation_s
    return max(asking, judging)


async def measure(given: argparse.Namespace) -> dict[str, float | int]:
    server = Server([slow(given.latency)])
    await server.start()
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "standin.py"
        task.write_text(TASK)
        path = Path(folder) / "s.wb"
        settings = RunSettings(
            task=str(task),
            policy="llm",
            group_size=1,
            in_flight=given.evaluators,
            budget=Budget(evaluations=given.candidates),
            confirm=False,
            llm=LlmSettings(base_url=server.base_url, model="stand-in", concurrency=given.at_once),
        )
        SessionWriter.create(path, encode_settings(settings)).close()
        executor = StandInExecutor(delay_s=given.evaluation)
        engine = Engine(SessionWriter.open(path), lambda settings, path: executor)
        spent_cpu_s, start_s = time.process_time(), time.monotonic()
        await engine.run()
        seconds, cpu_s = time.monotonic() - start_s, time.process_time() - spent_cpu_s
        with SessionReader(path) as reader:
            p = reader.project_at(reader.head_seq())
            sent = sum(isinstance(s.event, PromptSent) for s in reader.events(0, 1_000_000))
    await server.stop()
    best_s = ideal_s(given.candidates, given.at_once, given.latency, given.evaluation, given.evaluators)
    return {
        "candidates": p.evaluations,
        "prompts": sent,
        "at_once_most": server.most_at_once,
        "seconds": round(seconds, 2),
        "ideal_s": round(best_s, 2),
        "candidates_a_minute": round(60.0 * p.evaluations / seconds, 1),
        "overhead_a_candidate_ms": round(1e3 * (seconds - best_s) / p.evaluations, 2),
        "cpu_a_candidate_ms": round(1e3 * cpu_s / p.evaluations, 2),
    }


async def serve(port: int, latency_s: float) -> None:
    server = Server([slow(latency_s)])
    await server.start(port)
    print(server.base_url, flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=300)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--evaluators", type=int, default=8)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--evaluation", type=float, default=0.2)
    parser.add_argument("--serve", type=int, default=None, metavar="PORT")
    given = parser.parse_args()
    if given.serve is not None:
        asyncio.run(serve(given.serve, given.latency))
    else:
        print(json.dumps(asyncio.run(measure(given)), indent=2))


if __name__ == "__main__":
    main()
