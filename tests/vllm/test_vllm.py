"""The real server: vLLM on a CPU with SmolLM2-135M. `make test-vllm` runs these; they take minutes."""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.vllm.adapters import random_adapter
from tests.vllm.conftest import MODEL, Served, model_settings, settings

from workbench_engine.exits import ExitCode
from workbench_engine.llm import keeper
from workbench_engine.llm.client import OpenAIModel
from workbench_engine.llm.contract import Completion, Message, Request, Structured
from workbench_engine.llm.vllm_server import ServerFailed, VllmServer
from workbench_engine.policies.llm_points import point_of, schema_of
from workbench_engine.tasks.catalogue import bundled_space
from workbench_sessions.events import ResponseReceived, VerdictReached
from workbench_sessions.reader import SessionReader

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
CHOOSE = (Message("user", "Choose how a fast row softmax is compiled, as JSON."),)


@pytest.fixture
def ask(served: Served) -> Iterator[object]:
    def complete(request: Request, model: str = "") -> Completion:
        async def run() -> Completion:
            assert served.server.endpoint is not None
            endpoint = replace(served.server.endpoint, model=model or MODEL)
            client = OpenAIModel(endpoint, environment=served.server.environment)
            try:
                return await client.complete(request)
            finally:
                await client.aclose()

        return served.loop.run_until_complete(run())

    yield complete


def test_it_becomes_ready_and_tells_how_far_it_is(served: Served) -> None:
    states = [s.state for s in served.told]
    assert states[0] == "starting" and states[-1] == "ready" and len(states) > 2
    print(f"\nready after {served.told[-1].seconds:.0f} s")


def test_eight_answers_fill_a_design_space_with_their_tokens(ask: object) -> None:
    assert callable(ask)
    space = bundled_space("softmax_rows")
    assert space is not None
    structured = Structured(schema=schema_of(space))
    start_s = time.monotonic()
    done = ask(Request(CHOOSE, n=8, seed=7, structured=structured, logprobs=True, max_tokens=400))
    print(f"\n8 points in {time.monotonic() - start_s:.1f} s, {done.tokens_out} tokens")
    assert len(done.choices) == 8 and done.tokens_in > 0 and done.prompt_token_ids
    points = [point_of(space, choice.text) for choice in done.choices]
    assert len({p.key() for p in points}) > 1
    for choice in done.choices:
        assert choice.finish == "stop" and len(choice.token_ids) == len(choice.logprobs) > 10
        # The grammar leaves one token only in many places: a probability of 1, exactly.
        assert all(math.isfinite(p) and p <= 0.0 for p in choice.logprobs) and 0.0 in choice.logprobs
    assert sum(len(c.token_ids) for c in done.choices) == done.tokens_out


def test_a_seed_repeats_an_answer(ask: object) -> None:
    assert callable(ask)
    one = Request((Message("user", "Name a number."),), seed=3, max_tokens=12, logprobs=True)
    first, second, other = ask(one), ask(one), ask(replace(one, seed=4))
    assert first.choices[0].token_ids == second.choices[0].token_ids != other.choices[0].token_ids


def test_adapters_are_loaded_while_it_runs_and_change_the_probabilities(
    served: Served, ask: object, tmp_path: Path
) -> None:
    assert callable(ask)
    same = Request((Message("user", "Say hello."),), temperature=0.0, max_tokens=4, logprobs=True)
    plain = ask(same).choices[0]
    said = []
    for version in (1, 2):
        folder = random_adapter(tmp_path / f"pol-v{version}", version)
        endpoint = served.loop.run_until_complete(served.server.load_adapter(f"pol-v{version}", folder))
        said.append(ask(same, endpoint.model).choices[0])
    first = [round(c.logprobs[0], 4) for c in (plain, *said)]
    assert len(set(first)) == 3, first
    served.loop.run_until_complete(served.server.unload_adapter("pol-v1"))
    again = ask(same).choices[0]
    assert again.logprobs[0] == pytest.approx(plain.logprobs[0], abs=0.05)


def test_a_model_that_is_none_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    llm = replace(model_settings(), model=str(tmp_path / "empty"))
    server = VllmServer(settings(), llm, tmp_path / "vllm.log")
    with pytest.raises(ServerFailed) as caught:
        asyncio.run(server.start())
    text = str(caught.value)
    assert "\n" not in text and "empty" in text and str(tmp_path) not in text and len(text) < 700
    print(f"\n{text}")


def test_a_run_is_proposed_by_it_and_refereed(served: Served, tmp_path: Path) -> None:
    """The whole way: `workbench run --policy vllm`, points of the task's space, judged by the real referee."""
    assert served.server.endpoint is not None
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(
        f'[vllm]\nattach = "{served.server.endpoint.base_url}"\n[llm]\nn = 2\nmax_tokens = 400\n'
    )
    line = [sys.executable, "-m", "workbench", "run", "softmax_rows", "--policy", "vllm", "--answers", "points"]
    line += ["--model", MODEL, "--evaluations", "4", "--name", "small", "--no-tui", "--json"]
    environment = {**os.environ, **served.server.environment, "WORKBENCH_HOME": str(tmp_path)}
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, env=environment)
    # Whether a model of this size finds anything faster is luck.
    assert done.returncode in (ExitCode.OK, ExitCode.BUDGET), done.stderr[-3000:]
    session = SessionReader(tmp_path / "sessions" / "small.wb")
    verdicts = [one.event for one in session.of_kind("VerdictReached") if isinstance(one.event, VerdictReached)]
    answers = [one.event for one in session.of_kind("ResponseReceived") if isinstance(one.event, ResponseReceived)]
    assert len(verdicts) >= 4 and answers and sum(e.tokens_out or 0 for e in answers) > 0
    assert all(e.verdict != "FAILED" or e.reason for e in verdicts)
    print(f"\n{len(verdicts)} points of the model judged: {', '.join(sorted(e.verdict for e in verdicts))}")


def test_no_process_is_left(served: Served) -> None:
    """Last: it ends the server."""
    pid = served.server.pid
    assert pid is not None
    before = [pid, *keeper.descendants(pid, keeper.parents())]
    assert len(before) >= 3, "the keeper, the server, its engine"
    served.close()
    deadline_s = time.monotonic() + 60.0
    while any(alive(p) for p in before):
        assert time.monotonic() < deadline_s, [p for p in before if alive(p)]
        time.sleep(0.1)


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
