"""Whole runs: the engine, the policy and its client against a real server that misbehaves; only judging is stood in."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.engine.conductor.standin import TASK, StandInExecutor
from tests.engine.llm.server import (
    Behaviour,
    Exchange,
    Server,
    broken_json,
    disconnects,
    endless,
    error_in_stream,
    fails,
    garbage,
    half,
    half_politely,
    says,
    serving,
)
from tests.engine.policies.llm.kernels import KERNEL, answer

from workbench_engine.conducting import outage
from workbench_engine.conducting.lifecycle import Engine
from workbench_engine.exits import ExitCode
from workbench_engine.llm.backoff import Backoff
from workbench_engine.llm.settings import LlmSettings, PatchWeights
from workbench_engine.settings import RunSettings, encode_settings
from workbench_sessions import events as ev
from workbench_sessions.commands import Accept, Command, Reject, SetBudget, Steer
from workbench_sessions.events import Budget, Event
from workbench_sessions.log import SessionReader, SessionWriter, send_command
from workbench_sessions.projection import Projection


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outages are probed at once."""
    monkeypatch.setattr(outage, "PROBES", Backoff(first_s=0.02, longest_s=0.02, least_s=0.01))


class Writer:
    """Answers each request with a kernel nobody has sent before, which the stand-in finds so fast."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, x: Exchange) -> None:
        self.asked += 1
        said = f"// number {self.asked} speedup={1.2 + self.asked / 1000:.3f}\n{KERNEL}"
        await says(answer(said.replace("2.0f", f"{self.asked}.0f")))(x)


class Session:
    """A session that asks the server of a test."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s.wb"
        self._task = folder / "standin.py"
        self._task.write_text(TASK)

    def begin(self, server: Server, budget: Budget, **llm: object) -> None:
        given = {"base_url": server.base_url, "model": "m", "retries": 0, "patches": PatchWeights(1, 0, 0), **llm}
        settings = RunSettings(
            task=str(self._task),
            policy="llm",
            islands=1,
            group_size=int(str(llm.get("n", 1))),
            budget=budget,
            confirm=False,
            llm=LlmSettings(**given),  # type: ignore[arg-type]
        )
        SessionWriter.create(self.path, encode_settings(settings)).close()

    async def run(self) -> ExitCode:
        executor = StandInExecutor()
        engine = Engine(SessionWriter.open(self.path), lambda settings, path: executor)
        return await asyncio.wait_for(engine.run(), 40.0)

    def send(self, command: Command) -> None:
        send_command(self.path, command)

    def events(self) -> list[Event]:
        with SessionReader(self.path) as reader:
            return [s.event for s in reader.events(0, 1_000_000)]

    def of(self, kind: type) -> list:  # type: ignore[type-arg]
        return [e for e in self.events() if isinstance(e, kind)]

    def source(self, sha256: str) -> str:
        with SessionReader(self.path) as reader:
            return reader.source(sha256)

    def projection(self) -> Projection:
        with SessionReader(self.path) as reader:
            return reader.project_at(reader.head_seq())

    async def seen(self, condition: Callable[[Projection], bool]) -> None:
        for _ in range(16_000):
            if condition(self.projection()):
                return
            await asyncio.sleep(0.005)
        raise AssertionError("the session never showed what the test waits for")


def during(session: Session, *script: Behaviour, work: Callable[[Server], Awaitable[None]]) -> None:
    async def live() -> None:
        async with serving(*script) as server:
            await work(server)

    asyncio.run(live())


def whole(session: Session) -> Projection:
    """The end state, after checking that the log is consistent."""
    p = session.projection()
    sent, received = session.of(ev.PromptSent), session.of(ev.ResponseReceived)
    assert len({e.prompt for e in sent}) == len(sent)
    assert {e.prompt for e in received} <= {e.prompt for e in sent}
    assert all(row.verdict is not None for row in p.candidates.values())
    assert {row.origin.prompt for row in p.candidates.values()} <= {e.prompt for e in sent}
    spent = sum((e.tokens_in or 0) + (e.tokens_out or 0) + e.wasted_tokens for e in received)
    assert p.spent_tokens == spent
    return p


def test_several_prompts_are_open_at_once_and_the_budget_is_met_exactly(tmp_path: Path) -> None:
    session, write = Session(tmp_path), Writer()
    gate = asyncio.Event()
    at_once: list[Server] = []

    async def together(x: Exchange) -> None:
        # Nobody is answered before three have asked.
        if at_once[0].open >= 3:
            gate.set()
        await gate.wait()
        await write(x)

    async def work(server: Server) -> None:
        at_once.append(server)
        session.begin(server, Budget(evaluations=17), concurrency=3)
        assert await session.run() == ExitCode.OK
        assert server.most_at_once == 3

    during(session, together, work=work)
    p = whole(session)
    assert p.evaluations == 17 and len(p.candidates) == 17
    assert p.header.outcome == "budget"
    assert len({row.group for row in p.candidates.values()}) == 17


def test_every_trouble_in_one_run_and_nothing_is_lost(tmp_path: Path) -> None:
    session, write = Session(tmp_path), Writer()
    troubles = [
        *(fails(500), fails(429, "slow", {"retry-after": "0"}), garbage, broken_json, half, half_politely),
        *(disconnects, error_in_stream, endless(200_000), says("no code"), says("still none"), fails(503)),
    ]
    script: list[Behaviour] = []
    for trouble in troubles:
        script += [write, trouble]

    async def work(server: Server) -> None:
        session.begin(server, Budget(evaluations=20), concurrency=2, max_tokens=2000)
        assert await session.run() == ExitCode.OK

    during(session, *script, write, work=work)
    p = whole(session)
    assert p.evaluations == 20 and p.header.outcome == "budget"
    phases = [(e.phase, e.reason) for e in session.of(ev.PhaseChanged)]
    paused = [reason for phase, reason in phases if phase == "paused"]
    assert any("status 500" in reason for reason in paused)
    assert phases.count(("running", "the policy can be asked again")) == len(paused)
    problems = [e.problem for e in session.of(ev.ResponseReceived) if e.problem]
    assert len(problems) >= len(troubles) - 1
    # What arrived before a stream broke is in the log.
    assert any("half of an ans" in e.text for e in session.of(ev.ResponseStreamed))


def test_an_endpoint_that_dies_pauses_the_run_until_it_is_back(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work(server: Server) -> None:
        session.begin(server, Budget(evaluations=30), concurrency=2)
        running = asyncio.create_task(session.run())
        await session.seen(lambda p: p.evaluations >= 5)
        port = int(server.base_url.rsplit(":", 1)[1].split("/")[0])
        await server.stop()
        await session.seen(lambda p: p.header.phase == "paused")
        p = session.projection()
        assert "cannot be reached" in p.header.phase_reason
        assert p.header.phase_reason.endswith("start the server, or correct base_url")
        await server.start(port)
        assert await running == ExitCode.OK

    during(session, Writer(), work=work)
    p = whole(session)
    assert p.evaluations == 30
    assert all(a.evaluations <= b.evaluations for a, b in zip(p.policy_steps, p.policy_steps[1:], strict=False))


def test_patience_has_an_end(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work(server: Server) -> None:
        session.begin(server, Budget(evaluations=30), patience_minutes=0.001)
        assert await session.run() == ExitCode.FAILED

    during(session, fails(500, "always"), work=work)
    p = session.projection()
    assert p.header.closed and p.header.outcome == "stopped"
    assert "waited 0.001 minutes" in p.header.phase_reason


def test_a_cap_on_tokens_ends_the_run_and_a_larger_one_resumes_it(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work(server: Server) -> None:
        session.begin(server, Budget(tokens=30_000), concurrency=2, max_tokens=2000)
        assert await session.run() == ExitCode.OK
        first = whole(session)
        assert first.header.outcome == "budget" and "tokens" in first.header.phase_reason
        assert 0 < first.spent_tokens <= 30_000
        session.send(SetBudget(Budget(tokens=60_000)))
        assert await session.run() == ExitCode.OK
        second = whole(session)
        assert first.spent_tokens < second.spent_tokens <= 60_000
        assert len(second.candidates) > len(first.candidates)

    write = Writer()

    async def dear(x: Exchange) -> None:
        write.asked += 1
        code = f"// speedup=1.2\n{KERNEL.replace('2.0f', f'{write.asked}.0f')}"
        await says(answer(code), tokens=(2500, 1500))(x)

    during(session, dear, work=work)


def test_a_wrong_key_fails_the_run_with_what_to_do(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work(server: Server) -> None:
        session.begin(server, Budget(evaluations=5))
        assert await session.run() == ExitCode.FAILED

    during(session, fails(401, "bad key"), work=work)
    warning = session.of(ev.WarningRaised)[-1]
    assert "refuses the key" in warning.text and "OPENAI_API_KEY" in warning.remedy
    assert session.projection().header.outcome == "failed"


def test_a_run_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work(server: Server) -> None:
        session.begin(server, Budget(evaluations=25), concurrency=3)
        first = asyncio.create_task(session.run())
        await session.seen(lambda p: p.evaluations >= 8)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert session.projection().evaluations < 25
        assert await session.run() == ExitCode.OK

    during(session, Writer(), work=work)
    assert whole(session).evaluations == 25


def test_what_people_say_is_in_the_next_prompts(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work(server: Server) -> None:
        session.begin(server, Budget(evaluations=40), concurrency=1)
        running = asyncio.create_task(session.run())
        await session.seen(lambda p: p.evaluations >= 6)
        session.send(Steer("Use AVX-512 everywhere."))
        session.send(Reject("c00002", "no comments in it"))
        session.send(Accept("c00003", "tidy"))
        await running

    during(session, Writer(), work=work)
    p = session.projection()
    assert p.candidates["c00003"].decision == "accepted" and p.candidates["c00002"].decision == "rejected"
    prompts = [session.source(e.text_sha256) for e in session.of(ev.PromptSent)]
    assert "Use AVX-512 everywhere." not in prompts[0]
    last = prompts[-1]
    assert "Use AVX-512 everywhere." in last and "rejected c00002: no comments in it" in last
    exemplars = [e.candidate for s in session.of(ev.PromptSent)[-8:] for e in s.exemplars]
    assert "c00002" not in exemplars
    assert "accepted by a person" in "".join(prompts[-8:])


def test_a_model_that_only_repeats_itself_ends_the_run(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work(server: Server) -> None:
        session.begin(server, Budget(evaluations=50), concurrency=1)
        assert await session.run() == ExitCode.OK

    during(session, says(answer(f"// speedup=1.5\n{KERNEL}")), work=work)
    p = whole(session)
    assert p.header.outcome == "exhausted" and len(p.candidates) == 1


def test_a_model_that_never_gives_code_ends_the_run(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work(server: Server) -> None:
        session.begin(server, Budget(evaluations=50), concurrency=2, repair=False)
        assert await session.run() == ExitCode.FAILED

    during(session, says("I cannot do that."), work=work)
    p = session.projection()
    assert p.header.outcome == "exhausted"
    assert "20 prompts in a row gave nothing that can be tried" in p.header.phase_reason


ENGINE = """
import sys
from tests.engine.conductor.standin import StandInExecutor
from workbench_engine.__main__ import main
sys.exit(main([sys.argv[1]], make_executor=lambda settings, path: StandInExecutor(settings.source, delay_s=0.004)))
"""


def test_a_killed_engine_loses_nothing_that_was_told(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def engine() -> asyncio.subprocess.Process:
        root = Path(__file__).parents[4]
        return await asyncio.create_subprocess_exec(sys.executable, "-c", ENGINE, str(session.path), cwd=root)

    async def work(server: Server) -> None:
        session.begin(server, Budget(evaluations=40), concurrency=3)
        first = await engine()
        await session.seen(lambda p: p.evaluations >= 10)
        first.kill()
        await first.wait()
        before = session.projection()
        assert before.evaluations < 40
        second = await engine()
        assert await asyncio.wait_for(second.wait(), 150.0) == ExitCode.OK
        after = whole(session)
        assert after.evaluations == 40
        for name, row in before.candidates.items():
            if row.verdict is not None:
                assert after.candidates[name].speedup == row.speedup

    during(session, Writer(), work=work)
