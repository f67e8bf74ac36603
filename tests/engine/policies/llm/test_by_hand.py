"""Prompts of policy `manual` answered on a screen: the command reaches the prompt it names, and no other."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.engine.conductor.standin import TASK
from tests.engine.policies.llm.kernels import KERNEL, answer
from tests.engine.policies.llm.test_run import Session

from workbench_engine.llm.settings import LlmSettings
from workbench_engine.policies.llm.by_hand import answer_path, prompts_folder, put_answer
from workbench_engine.settings import RunSettings, encode_settings
from workbench_sessions import events as ev
from workbench_sessions.commands import AnswerPrompt, Stop
from workbench_sessions.events import Budget
from workbench_sessions.log import SessionWriter


def begun(folder: Path, policy: str = "manual") -> Session:
    session = Session(folder)
    settings = RunSettings(
        task=str(folder / "standin.py"),
        policy=policy,
        islands=1,
        group_size=1,
        budget=Budget(evaluations=4),
        confirm=False,
        llm=LlmSettings(),
    )
    assert TASK
    SessionWriter.create(session.path, encode_settings(settings)).close()
    return session


def test_an_answer_from_a_screen_becomes_a_candidate(tmp_path: Path) -> None:
    session = begun(tmp_path)

    async def live() -> None:
        running = asyncio.create_task(session.run())
        await session.seen(lambda p: "p00001" in p.requests)
        session.send(AnswerPrompt("p00001", answer(f"// speedup=1.5\n{KERNEL}"), "ada"))
        await session.seen(lambda p: p.evaluations == 1 and "p00002" in p.requests)
        session.send(AnswerPrompt("p00001", "too late"))
        session.send(AnswerPrompt("p00009", "to nobody"))
        session.send(AnswerPrompt("p00002", "  \n"))
        await session.seen(lambda p: len(session.of(ev.CommandRefused)) == 3)
        session.send(Stop("enough"))
        await running

    asyncio.run(live())
    p = session.projection()
    (made,) = p.candidates.values()
    assert (made.origin.policy, made.origin.prompt, made.verdict) == ("manual", "p00001", "FASTER")
    first, second = p.requests["p00001"], p.requests["p00002"]
    assert (first.state, first.candidates, first.model) == ("answered", [made.id], "a person")
    assert second.state == "lost" and not second.candidates
    refused = [e.reason for e in session.of(ev.CommandRefused)]
    assert refused[:2] == ["p00001 does not wait for an answer", "p00009 does not wait for an answer"]
    assert "empty" in refused[2]
    assert (prompts_folder(session.path) / "p00001.answer.md").read_text().startswith("#")


def test_an_answer_is_filed_under_its_prompt_and_never_half(tmp_path: Path) -> None:
    put_answer(tmp_path / "new", "a" * 64, "one")
    path = put_answer(tmp_path / "new", "a" * 64, "two")
    assert path == answer_path(tmp_path / "new", "a" * 64) != answer_path(tmp_path / "new", "b" * 64)
    assert [p.read_text() for p in (tmp_path / "new").iterdir()] == ["two"]
