"""A real server of models in a thread of its own, whose answers depend only on the model and the number of the try."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.engine.llm.server import Behaviour, Exchange, Server, says

from workbench.collecting.asking import seed_of

ROOT = Path(__file__).parents[3]
TASK = "softmax_rows"
GOOD = (ROOT / "tests/controls/cpu/01_plain_kernel.cpp").read_text()
CHEAT = (ROOT / "tests/exploits/cpu/07_call_count_switch.cpp").read_text()
WRONG = GOOD.replace("const float r = 1 / s;", "const float r = 2 / s;")
BROKEN = GOOD.replace("const float r = 1 / s;", "const float r = no_such_name / s;")


def code(text: str) -> str:
    """An answer around a kernel."""
    return f"## Performance analysis\nMemory bound.\n\n## Code\n```cpp\n{text}```\nGood luck!\n"


def good(number: int) -> str:
    """A right kernel like no other."""
    return code(f"{GOOD}// variant {number}\n")


class Models:
    """Answers each model's n-th try with the n-th of its texts, the last one again and again."""

    def __init__(self, texts: Mapping[str, Sequence[str | Behaviour]], task: str = TASK, seed: int = 0) -> None:
        self.answered: list[tuple[str, int]] = []
        """(model, number) of the requests that were answered to the end."""
        self._texts = texts
        self._numbers = {seed_of(seed, task, model, n): (model, n) for model in texts for n in range(1, 41)}

    def number_of(self, body: Mapping[str, Any]) -> tuple[str, int]:
        """(model, number of the try) of a request."""
        assert self._numbers[body["seed"]][0] == body["model"]
        return self._numbers[body["seed"]]

    async def __call__(self, x: Exchange) -> None:
        model, number = self.number_of(x.body)
        texts = self._texts[model]
        said = texts[min(number, len(texts)) - 1]
        await (says(said) if isinstance(said, str) else said)(x)
        self.answered.append((model, number))


@contextmanager
def served(behaviour: Behaviour, port: int = 0) -> Iterator[Server]:
    """The server while the block runs; the block may be anything that blocks."""
    loop = asyncio.new_event_loop()
    server = Server([behaviour])
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(port), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _end(server: Server) -> None:
    assert server._server is not None
    server._server.close()
    rest = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
