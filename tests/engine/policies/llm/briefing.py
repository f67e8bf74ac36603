"""A made-up task, and a policy that was told about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench_engine.llm.settings import LlmSettings
from workbench_engine.policies.contract import Brief, FailedStage, Scored
from workbench_engine.tasks.contract import ShapeCase, Task, TensorSpec
from workbench_sessions.events import Budget, Event, HostCard

HOST = HostCard("secret-host", "A processor", 2, 8 << 30, "Linux", "3.11", "2.13", "g++ 12")
SOURCE = '''"""Doubles."""
import torch
from torch import nn

HIDDEN = [{"rows": 7, "cols": 129}]


class Model(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs(rows=4, cols=8):
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []


def cost(rows, cols):
    return {"bytes": 8 * rows * cols}
'''


def task() -> Task:
    tensors = (
        TensorSpec("x", (4, 8), "float32", "input"),
        TensorSpec("weight", (8,), "float32", "state"),
        TensorSpec("output", (4, 8), "float32", "output"),
    )
    case = ShapeCase("cpu", {"rows": 4, "cols": 8}, tensors)
    return Task("made_up", "Doubles", SOURCE, "made_up.py", "float32", {"cpu": case})


def scored(
    name: str, text: str, speedup: float | None, feedback: str = "", failed: FailedStage = "", verdict: str = ""
) -> Scored:
    return Scored(name, text, None, speedup, verdict or ("SAME" if speedup else "FAILED"), 0, 0, feedback, failed)


class Told:
    """What a policy said."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.texts: dict[str, str] = {}

    def say(self, event: Event, texts: Mapping[str, str]) -> None:
        self.events.append(event)
        self.texts.update(texts)

    def of(self, kind: type) -> list:  # type: ignore[type-arg]
        return [e for e in self.events if isinstance(e, kind)]


def brief(told: Told, settings: LlmSettings, folder: Path = Path(), budget: Budget = Budget()) -> Brief:
    return Brief(
        task=task(),
        case="cpu",
        backend="cpu",
        host=HOST,
        seed=1,
        llm=settings,
        say=told.say,
        folder=folder,
        budget=budget,
    )
