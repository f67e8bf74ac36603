"""Small tasks and candidates as released files hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

REFERENCE = '''import torch
import torch.nn as nn

class Model(nn.Module):
    """Softmax over rows."""
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x):
        return torch.softmax(x, dim=1)

batch_size = 16
dim = 256

def get_inputs():
    return [torch.randn(batch_size, dim)]

def get_init_inputs():
    return []  # No special initialization inputs needed
'''


def candidate(body: str, init: str = "pass", head: str = "", tail: str = "") -> str:
    """A file with ModelNew."""
    return f"""import torch
import torch.nn as nn
{head}

class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        {init}

    def forward(self, x):
        {body}

{tail}
"""


@pytest.fixture
def entry() -> Callable[..., dict[str, Any]]:
    """One object of a released file, as CUDA-L1 writes them."""

    def make(task: int, code: str | None, level: int = 1, score: Any = 1.5, **more: Any) -> dict[str, Any]:
        return {
            "level_id": level,
            "task_id": task,
            "ref_code": REFERENCE,
            "custom_code": code,
            "cuda_graph_code": None,
            "score_default": score,
            "score_cuda_graph": None,
            **more,
        }

    return make
