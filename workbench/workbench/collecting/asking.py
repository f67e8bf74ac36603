"""How a model is asked for one solution of a task: code, or a point of the task's design space."""

from __future__ import annotations

import hashlib
from typing import Protocol

from workbench_engine.conducting.opening import case_of
from workbench_engine.host import host_card
from workbench_engine.llm.contract import Choice, Message, Request, Structured
from workbench_engine.llm.settings import LlmSettings
from workbench_engine.policies.contract import Context
from workbench_engine.policies.llm.answers import read_answer
from workbench_engine.policies.llm.hardware import hardware_facts, read_caches
from workbench_engine.policies.llm.planning import Plan
from workbench_engine.policies.llm.prompting import Prompts
from workbench_engine.policies.llm_points import dimensions_of, point_of, schema_of
from workbench_engine.tasks.contract import Task
from workbench_engine.tasks.design import DesignSpace


class Asker(Protocol):
    """One-shot prompts, as CUDA-L1's first stage has them: no earlier solution is shown."""

    kind: str
    messages: tuple[Message, ...]

    def request(self, seed: int) -> Request: ...

    def read(self, choice: Choice) -> tuple[str, str]:
        """(code, "") or ("", what is wrong with the answer)."""
        ...


def asker_of(task: Task, case: str, space: DesignSpace | None, llm: LlmSettings) -> Asker:
    """Raises ValueError when points are asked for and the task has none, TemplateProblem."""
    timed = case_of(task, case, "cpu").name
    cpuinfo = _cpuinfo()
    prompts = Prompts(task, timed, llm.kind, hardware_facts(host_card(), cpuinfo, read_caches()), llm.templates)
    if llm.answers == "points":
        if space is None:
            raise ValueError(f"task {task.name} has no design space to ask points of")
        return _Points(space, prompts)
    return _Code(prompts, llm)


class _Code:
    def __init__(self, prompts: Prompts, llm: LlmSettings) -> None:
        self._llm = llm
        self.kind: str = llm.kind
        self.messages = prompts.messages(Plan("full"), Context("", 0, 0), 0)

    def request(self, seed: int) -> Request:
        return Request(self.messages, seed=seed)

    def read(self, choice: Choice) -> tuple[str, str]:
        answer = read_answer(choice, "full", self._llm.kind)
        return answer.code, answer.problem


class _Points:
    kind = "kernel"

    def __init__(self, space: DesignSpace, prompts: Prompts) -> None:
        self._space = space
        self._structured = Structured(schema=schema_of(space), name="design_point")
        shown = {"dimensions": dimensions_of(space), "exemplars": [], "failures": [], "steering": ""}
        self.messages = prompts.points(shown)

    def request(self, seed: int) -> Request:
        return Request(self.messages, seed=seed, structured=self._structured)

    def read(self, choice: Choice) -> tuple[str, str]:
        try:
            return self._space.render(point_of(self._space, choice.text)).text(), ""
        except ValueError as error:
            return "", str(error)


def seed_of(seed: int, task: str, model: str, number: int) -> int:
    """A seed of its own for every attempt, the same when a collection goes on."""
    digest = hashlib.sha256(f"{seed}:{task}:{model}:{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _cpuinfo() -> str:
    from pathlib import Path

    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
