"""A collection that is killed, again and again, and called again: the same data set, nothing asked or judged twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.engine.llm.server import Exchange
from tests.workbench.collecting.answering import TASK, WRONG, Models, code, good, served

from workbench_engine.exits import ExitCode

Run = Callable[..., int]
TEXTS = {"a": ["no", code(WRONG), good(1), good(2)], "b": [good(3), "no", good(3), good(4)]}


def started(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "workbench", "collect", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def until(condition: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 120.0) -> None:
    end_s = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end_s, "the collection never came so far"
        time.sleep(0.01)


def killed(process: subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def whole_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kept(folder: str) -> list[tuple[Any, ...]]:
    rows = [json.loads(line) for line in (Path(folder) / "sft.jsonl").read_text().splitlines()]
    names = (
        "task",
        "model",
        "number",
        "seed",
        "prompt",
        "reference",
        "code",
        "answer",
        "cost",
        "tokens_in",
        "endpoint",
    )
    return [tuple(row[name] for name in names) for row in rows]


def test_killed_twice_it_ends_as_one_that_was_not(home: Path, run: Run, capsys: Any) -> None:
    hang = [True]

    async def stalls(x: Exchange) -> None:
        if hang[0]:
            # In the middle of an answer, until the one who asked is dead.
            await x.begin_stream()
            await x.delta(content="half of an ans")
            await asyncio.sleep(600.0)
        await models(x)

    async def behave(x: Exchange) -> None:
        number = models.number_of(x.body)
        await (stalls if number == ("b", 4) else models)(x)

    models = Models(TEXTS)
    with served(behave) as server:
        Path("workbench.toml").write_text(
            "".join(f'[llm.endpoints.{m}]\nbase_url = "{server.base_url}"\nmodel = "{m}"\n' for m in TEXTS)
            + "".join(f"[llm.prices.{m}]\ninput = 1.0\noutput = 1.0\n" for m in TEXTS)
        )
        attempts = Path("cut/attempts.jsonl")

        def answers() -> int:
            return sum(map(whole_lines, Path("cut/traffic").glob("*.jsonl")))

        # First: an answer was paid for, and its code is not judged yet.
        first = started(TASK, "-o", "cut")
        until(lambda: answers() > whole_lines(attempts) >= 1, first)
        assert run("collect", TASK, "-o", "cut") == ExitCode.USAGE
        assert "another collection writes there" in capsys.readouterr().err
        killed(first)
        judged_before = attempts.read_bytes()
        answered_before = list(models.answered)

        # Then: in the middle of an answer.
        second = started(TASK, "-o", "cut")
        until(lambda: any(models.number_of(body) == ("b", 4) for body in server.requests), second)
        killed(second)
        hang[0] = False
        assert run("collect", TASK, "-o", "cut") == ExitCode.OK

        assert attempts.read_bytes().startswith(judged_before) and judged_before.endswith(b"\n")
        assert len(answered_before) < len(models.answered)
        assert sorted(models.answered) == [(m, n) for m in ("a", "b") for n in (1, 2, 3, 4)]
        lines = [json.loads(line) for line in attempts.read_text().splitlines()]
        assert sorted((one["model"], one["number"]) for one in lines) == sorted(models.answered)
        seeds = [one["referee_seed"] for one in lines if one["verdict"] and not one["repeats"]]
        assert len(set(seeds)) == len(seeds) == 5

        assert run("collect", TASK, "-o", "whole") == ExitCode.OK
    assert kept("cut") == kept("whole")
    assert [(row[1], row[2]) for row in kept("cut")] == [("a", 3), ("a", 4), ("b", 1), ("b", 4)]
