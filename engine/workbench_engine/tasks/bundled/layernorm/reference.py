"""Layer normalisation of the rows of a matrix, with weight and bias."""

import torch
from torch import nn

CASES = {"cpu": {"rows": 1024, "cols": 2048}, "gpu": {"rows": 16384, "cols": 4096}}
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
        self.norm = nn.LayerNorm(cols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs(rows: int = 1024, cols: int = 2048) -> list[torch.Tensor]:
    return [torch.randn(rows, cols)]


def get_init_inputs(cols: int = 2048) -> list[object]:
    return [cols]


def cost(rows: int, cols: int) -> dict[str, int]:
    return {"bytes": 8 * rows * cols + 8 * cols, "flops": 7 * rows * cols}
