"""Log-sum-exp over the middle dimension of a three-dimensional tensor."""

import torch
from torch import nn

batch, middle, inner = 32, 96, 512

CASES = {
    "cpu": {"batch": 32, "middle": 96, "inner": 512},
    "gpu": {"batch": 128, "middle": 512, "inner": 1024},
}
HIDDEN = [
    {"batch": 1, "middle": 1, "inner": 1},
    {"batch": 3, "middle": 7, "inner": 131},
    {"batch": 1, "middle": 257, "inner": 17},
    {"batch": 5, "middle": 64, "inner": 3},
]
ACCUMULATE = "middle"


class Model(nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, dim=1)


def get_inputs(batch=batch, middle=middle, inner=inner):
    return [torch.randn(batch, middle, inner) * 2]


def get_init_inputs():
    return []


def cost(batch, middle, inner):
    """One read an element, one write a column; 8 operations an element (exp counted as 6)."""
    return {"bytes": 4 * (batch * middle * inner + batch * inner), "flops": 8 * batch * middle * inner}
