"""Cumulative sum along the rows of a matrix."""

import torch
from torch import nn

rows, cols = 1024, 2048

CASES = {"cpu": {"rows": 1024, "cols": 2048}, "gpu": {"rows": 8192, "cols": 16384}}
HIDDEN = [
    {"rows": 1, "cols": 1},
    {"rows": 3, "cols": 1021},
    {"rows": 17, "cols": 64},
    {"rows": 61, "cols": 7},
    {"rows": 1, "cols": 4099},
]
ACCUMULATE = "cols"


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1)


def get_inputs(rows=rows, cols=cols):
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []


def cost(rows, cols):
    """One read, one write and one addition an element."""
    return {"bytes": 8 * rows * cols, "flops": rows * cols}
