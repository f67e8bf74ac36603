"""One real server for all tests of this folder. They run only where `make test-vllm` says where vLLM is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from workbench_engine.llm.settings import LlmSettings
from workbench_engine.llm.vllm_server import ServerState, VllmServer, serving
from workbench_engine.llm.vllm_settings import VllmSettings

PLACE = os.environ.get("KERNEL_WORKBENCH_VLLM", "")
MODEL = "SmolLM2-135M-Instruct"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if not PLACE and collection_path.name.startswith("test_") else None


def settings() -> VllmSettings:
    return VllmSettings(
        command=(str(Path(PLACE) / "venv" / "bin" / "vllm"),),
        args=("--enforce-eager",),
        # One thread: two wait for each other in a loop, which on a busy machine takes a hundred times as long.
        env={"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "0"},
        max_model_len=4096,
        max_num_seqs=16,
    )


def model_settings() -> LlmSettings:
    return LlmSettings(model=str(Path(PLACE) / MODEL), temperature=1.0, max_tokens=400, total_s=600.0)


class Served:
    """A server that goes on between tests, on an event loop of its own."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.told: list[ServerState] = []
        self.log = folder / "vllm.log"
        self._context = serving(settings(), model_settings(), self.log, self.told.append)
        self.server: VllmServer = self.loop.run_until_complete(self._context.__aenter__())

    def close(self) -> None:
        """Ends the server; a second time does nothing."""
        if self.loop.is_closed():
            return
        self.loop.run_until_complete(self._context.__aexit__(None, None, None))
        self.loop.close()


@asynccontextmanager
async def client(server: VllmServer, model: str = "") -> AsyncIterator[object]:
    from workbench_engine.llm.client import OpenAIModel

    assert server.endpoint is not None
    from msgspec.structs import replace

    made = OpenAIModel(replace(server.endpoint, model=model or server.endpoint.model), environment=server.environment)
    try:
        yield made
    finally:
        await made.aclose()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("vllm"))
    yield made
    made.close()
