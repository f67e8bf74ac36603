"""Attention over short sequences, as two matrix products around a softmax."""

import math

import torch
from torch import nn

CASES = {
    "cpu": {"batch": 16, "heads": 8, "length": 64, "width": 32},
    "gpu": {"batch": 64, "heads": 16, "length": 128, "width": 64},
}
HIDDEN = [
    {"batch": 1, "heads": 1, "length": 1, "width": 8},
    {"batch": 2, "heads": 3, "length": 17, "width": 5},
    {"batch": 1, "heads": 2, "length": 128, "width": 64},
    {"batch": 3, "heads": 1, "length": 61, "width": 33},
]
ACCUMULATE = "length"


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        return torch.matmul(torch.softmax(scores, dim=-1), v)


def get_inputs(batch: int = 16, heads: int = 8, length: int = 64, width: int = 32) -> list[torch.Tensor]:
    return [torch.randn(batch, heads, length, width) for _ in range(3)]


def get_init_inputs() -> list[object]:
    return []


def cost(batch: int, heads: int, length: int, width: int) -> dict[str, int]:
    pairs = batch * heads * length * length
    return {"bytes": 16 * batch * heads * length * width, "flops": pairs * (4 * width + 5)}
