"""Softmax over the rows of a matrix."""

import torch
from torch import nn

CASES = {"cpu": {"rows": 1024, "cols": 2048}, "gpu": {"rows": 16384, "cols": 8192}}
HIDDEN = [
    {"rows": 7, "cols": 129},
    {"rows": 1, "cols": 4099},
    {"rows": 3, "cols": 1000},
    {"rows": 61, "cols": 17},
]
ACCUMULATE = "cols"


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def get_inputs(rows: int = 1024, cols: int = 2048) -> list[torch.Tensor]:
    return [torch.randn(rows, cols)]


def get_init_inputs() -> list[object]:
    return []


def cost(rows: int, cols: int) -> dict[str, int]:
    return {"bytes": 8 * rows * cols, "flops": 5 * rows * cols}
