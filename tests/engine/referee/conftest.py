"""A small task on a real bench, in real cages, opened once for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench_engine.referee.bench import Bench
from workbench_engine.referee.protocol import Protocol
from workbench_engine.sandbox.level import probe
from workbench_sessions.events import Event

TASK = '''"""Scale rows by a weight, add a bias, clamp."""
import torch
import torch.nn as nn

CASES = {"cpu": {"rows": 256, "cols": 512}}
HIDDEN = [{"rows": 3, "cols": 67}, {"rows": 1, "cols": 1}]
ACCUMULATE = 1


class Model(nn.Module):
    def __init__(self, cols=512):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        return torch.clamp(torch.sigmoid(x * self.weight) * x + self.bias, min=-0.25)


def get_inputs(rows=256, cols=512):
    return [torch.randn(rows, cols)]


def get_init_inputs(cols=512):
    return [cols]


def cost(rows, cols):
    return {"bytes": 8 * rows * cols, "flops": 6 * rows * cols}
'''


class Judged:
    """The bench plus what it emitted for the last candidate."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        cores = sorted(os.sched_getaffinity(0))
        self.bench = Bench(
            level=probe(),
            device="cpu",
            source=TASK,
            path="scale_rows.py",
            case="",
            core=cores[-1],
            other_cores=cores[:-1] or cores,
            warm_modules=False,
            emit=self.events.append,
            protocol=Protocol(floor_runs=2, floor_pairs=8, call_deadline_s=3.0),
        )
        self.bench.measure_floor()
        # The shared machine's noise is not the subject here: verdicts on correctness must not depend on it.
        self.floor_events = list(self.events)


@pytest.fixture(scope="session")
def judged() -> Iterator[Judged]:
    before = os.sched_getaffinity(0)
    made = Judged()
    yield made
    made.bench.close()
    os.sched_setaffinity(0, before)


@pytest.fixture
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "builds"
