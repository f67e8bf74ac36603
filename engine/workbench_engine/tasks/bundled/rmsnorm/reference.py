"""Root-mean-square normalisation of rows, composed of primitive operations, with weight."""

import torch
from torch import nn

CASES = {"cpu": {"rows": 1024, "cols": 1024}, "gpu": {"rows": 16384, "cols": 4096}}
HIDDEN = [
    {"rows": 7, "cols": 131},
    {"rows": 1, "cols": 4099},
    {"rows": 3, "cols": 1000},
    {"rows": 61, "cols": 17},
]
ACCUMULATE = "cols"


class Model(nn.Module):
    def __init__(self, cols: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * self.weight


def get_inputs(rows: int = 1024, cols: int = 1024) -> list[torch.Tensor]:
    return [torch.randn(rows, cols)]


def get_init_inputs(cols: int = 1024) -> list[object]:
    return [cols]


def cost(rows: int, cols: int) -> dict[str, int]:
    return {"bytes": 8 * rows * cols + 4 * cols, "flops": 4 * rows * cols}
