from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from workbench_engine.llm import keeper
from workbench_engine.llm.contract import Message, Request
from workbench_engine.llm.errors import ModelUnavailable
from workbench_engine.llm.settings import LlmSettings
from workbench_engine.llm.vllm_server import ServerFailed, ServerState, VllmModel, VllmServer, serving
from workbench_engine.llm.vllm_settings import (
    VllmSettings,
    command_line,
    environment_of,
    plain_line,
    progress_line,
    served_name,
    telling_line,
)

COMMAND = (sys.executable, str(Path(__file__).with_name("serves.py")))


def settings(folder: Path, **env: str) -> VllmSettings:
    return VllmSettings(command=COMMAND, env={"PIDS": str(folder / "pids"), **env}, start_s=60.0)


def pids(folder: Path) -> list[int]:
    return [int(p) for p in (folder / "pids").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def gone(folder: Path) -> None:
    """Returns once no process of the server is left."""
    async with asyncio.timeout(60.0):
        while any(alive(pid) for pid in pids(folder)):
            await asyncio.sleep(0.02)


@pytest.fixture
def llm(tmp_path: Path) -> LlmSettings:
    (tmp_path / "small-model").mkdir()
    return LlmSettings(model=str(tmp_path / "small-model"), stream=False, retries=0)


def test_a_server_starts_answers_and_leaves_no_process_not_even_one_that_will_not_hear(
    tmp_path: Path, llm: LlmSettings
) -> None:
    told: list[ServerState] = []

    async def run() -> None:
        async with serving(settings(tmp_path, DEAF="1"), llm, tmp_path / "vllm.log", told.append) as server:
            assert server.endpoint is not None and server.endpoint.model == "small-model"
            assert server.alive and all(alive(pid) for pid in pids(tmp_path))
            assert "Loading weights" in server.tail()
        await gone(tmp_path)

    asyncio.run(run())
    assert told[0].state == "starting" and "ready" in [s.state for s in told]


def test_it_ends_with_an_engine_that_is_killed(tmp_path: Path, llm: LlmSettings) -> None:
    program = (
        "import asyncio, pathlib, sys\n"
        "from workbench_engine.llm.settings import LlmSettings\n"
        "from workbench_engine.llm.vllm_server import *\n"
        "from workbench_engine.llm.vllm_settings import VllmSettings\n"
        "async def main():\n"
        "    s = VllmSettings(command=tuple(sys.argv[1:3]), env={'PIDS': sys.argv[3]})\n"
        "    await VllmServer(s, LlmSettings(model=sys.argv[4]), pathlib.Path(sys.argv[5])).start()\n"
        "    print('up', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    arguments = [*COMMAND, str(tmp_path / "pids"), llm.model, str(tmp_path / "vllm.log")]
    engine = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE)
    try:
        assert engine.stdout is not None and engine.stdout.readline() == b"up\n"
        assert all(alive(pid) for pid in pids(tmp_path))
    finally:
        engine.send_signal(signal.SIGKILL)
        engine.wait()
    asyncio.run(gone(tmp_path))


def test_one_that_cannot_start_says_why_in_one_line(tmp_path: Path, llm: LlmSettings) -> None:
    failing = settings(tmp_path, FAIL_WITH="ValueError: No available memory for the cache blocks.")
    told: list[ServerState] = []
    server = VllmServer(failing, llm, tmp_path / "run-vllm.log", told.append)
    with pytest.raises(
        ServerFailed, match=r"status 3 while it started: ValueError: No available memory.*run-vllm\.log"
    ):
        asyncio.run(server.start())
    assert told[-1].state == "failed" and not server.alive


def test_no_program_and_no_model_are_told_too(tmp_path: Path, llm: LlmSettings) -> None:
    absent = VllmSettings(command=(str(tmp_path / "absent"),))
    with pytest.raises(ServerFailed, match="No such file"):
        asyncio.run(VllmServer(absent, llm, tmp_path / "vllm.log").start())
    with pytest.raises(ServerFailed, match="no such folder"):
        asyncio.run(VllmServer(absent, replace(llm, model="/not/there"), tmp_path / "vllm.log").start())
    with pytest.raises(ServerFailed, match="--model"):
        asyncio.run(VllmServer(absent, replace(llm, model=""), tmp_path / "vllm.log").start())


def test_a_model_starts_its_server_and_starts_it_again_when_it_died(tmp_path: Path, llm: LlmSettings) -> None:
    async def run() -> None:
        model = VllmModel(VllmServer(settings(tmp_path), llm, tmp_path / "vllm.log"))
        try:
            with suppress(ModelUnavailable):
                await model.prepare()
            first, other = await asyncio.gather(*(model.complete(Request((Message("user", "x"),))) for _ in range(2)))
            assert first.choices == other.choices and len(pids(tmp_path)) == 2
            await model.prepare()
            with pytest.raises(ModelUnavailable):
                await model.complete(Request((Message("user", "die"),)))
            async with asyncio.timeout(60.0):
                while True:
                    # The keeper tells of the death a moment after the connection does.
                    with suppress(ModelUnavailable):
                        again = await model.complete(Request((Message("user", "x"),)))
                        break
                    await asyncio.sleep(0.05)
            assert again.choices != first.choices
        finally:
            await model.aclose()
        await gone(tmp_path)

    asyncio.run(run())


def test_a_start_that_fails_is_told_once_and_not_tried_again_behind_ones_back(tmp_path: Path, llm: LlmSettings) -> None:
    async def run() -> list[str]:
        told: list[ServerState] = []
        failing = settings(tmp_path, FAIL_WITH="ValueError: no memory", FAIL_AFTER_S="2.5")
        model = VllmModel(VllmServer(failing, llm, tmp_path / "vllm.log", told.append))
        try:
            with pytest.raises(ServerFailed, match="no memory"):
                async with asyncio.timeout(30.0):
                    while True:
                        with suppress(ModelUnavailable):
                            await model.prepare()
                        # It ends while nobody waits for it.
                        await asyncio.sleep(0.7)
        finally:
            await model.aclose()
        return [s.state for s in told if s.state != "ended"]

    assert asyncio.run(run()) == ["starting", "failed"]


def test_attaching_starts_nothing_and_checks_the_model(tmp_path: Path, llm: LlmSettings) -> None:
    async def run() -> None:
        async with serving(settings(tmp_path), llm, tmp_path / "vllm.log") as server:
            assert server.endpoint is not None
            url = VllmSettings(attach=server.endpoint.base_url)
            key = server.environment
            other = VllmServer(url, llm, tmp_path / "no.log", outer=key)
            assert (await other.start()).model == "small-model" and other.pid is None
            await other.aclose()
            assert server.alive
            with pytest.raises(ServerFailed, match="serves small-model, not big"):
                await VllmServer(url, replace(llm, model="big"), tmp_path / "no.log", outer=key).start()
            with pytest.raises(ServerFailed, match="wants a key"):
                await VllmServer(url, llm, tmp_path / "no.log", outer={}).start()
        nobody = VllmSettings(attach="http://127.0.0.1:9/v1")
        with pytest.raises(ModelUnavailable, match="no server answers"):
            await VllmServer(nobody, llm, tmp_path / "no.log", outer={}).start()

    asyncio.run(run())


def test_the_command_line_holds_what_was_asked_for() -> None:
    line = command_line(
        VllmSettings(gpu_memory=0.45, tensor_parallel=2, priority=True, lora=False, args=("--x",)), "/models/big", 81
    )
    text = " ".join(line)
    assert line[:3] == ["vllm", "serve", "/models/big"] and line[-1] == "--x" and "--enable-lora" not in line
    for part in ("--host 127.0.0.1 --port 81", "--served-model-name big", "--gpu-memory-utilization 0.45"):
        assert part in text
    assert "--tensor-parallel-size 2" in text and "--scheduling-policy priority" in text
    assert "--enable-lora --max-lora-rank 16 --max-loras 4" in " ".join(command_line(VllmSettings(), "m", 1))


def test_the_server_gets_no_keys_and_only_untimed_cores() -> None:
    inner = environment_of(
        VllmSettings(gpus="1", env={"A": "b"}), "/m", "secret", [0, 2], {"OPENAI_API_KEY": "sk", "PATH": "/bin"}
    )
    assert "OPENAI_API_KEY" not in inner and inner["VLLM_API_KEY"] == "secret" and inner["PATH"] == "/bin"
    assert inner["VLLM_CPU_OMP_THREADS_BIND"] == "0,2" and inner["CUDA_VISIBLE_DEVICES"] == "1" and inner["A"] == "b"


def test_no_path_leaks_into_a_model_name() -> None:
    assert served_name("/home/somebody/models/Small-7B") == "Small-7B" and served_name("org/Small-7B") == "org/Small-7B"


LOG = """\
INFO 12-01 05:00:00 [api.py:1] Starting
(EngineCore pid=7) INFO 12-01 05:00:01 [loader.py:5] Loading weights took 2 s
(EngineCore pid=7) ERROR 12-01 05:00:02 [core.py:9] ValueError: The model needs 20 GiB, 8 GiB are free.
Traceback (most recent call last):
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""


def test_the_root_cause_is_found_in_a_log() -> None:
    assert telling_line(LOG) == "ValueError: The model needs 20 GiB, 8 GiB are free."
    assert telling_line("") == "" and telling_line("only this\n") == "only this"
    assert telling_line("torch.OutOfMemoryError: CUDA out of memory. Tried\nbye").startswith("torch.OutOfMemoryError")
    refused = "pydantic_core.ValidationError: 1 validation error for ModelConfig\n  Value error, no such model: x.\nFix"
    worker = "ValueError: no memory\nException: WorkerProc initialization failed due to an exception. See stack trace."
    assert telling_line(worker) == "ValueError: no memory"
    assert telling_line(refused) == "Value error, no such model: x."
    assert plain_line("(EngineCore pid=7) INFO 12-01 05:00:01 [loader.py:5] Loading weights") == "Loading weights"
    assert progress_line("Loading weights: 10%\rLoading weights: 60%\nRoute: x\n\n") == "Loading weights: 60%"


def test_descendants_are_found_over_generations() -> None:
    assert sorted(keeper.descendants(1, {1: 0, 2: 1, 3: 2, 4: 3, 9: 0})) == [2, 3, 4]
    assert os.getpid() in keeper.parents() and time.monotonic() > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [({"lora_rank": 7}, "lora_rank = 7"), ({"gpu_memory": 1.5}, "gpu_memory"), ({"command": ()}, "command is empty")],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(VllmSettings(), **change)
