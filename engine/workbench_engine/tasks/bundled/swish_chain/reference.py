"""Swish, a scale for each column, a clamp and a residual: a chain that eager torch walks through pass by pass.

The clamp comes before the residual, so that no large terms cancel: the answer is well conditioned everywhere.
"""

import torch
from torch import nn

rows, cols = 1024, 1024
low, high = -0.25, 1.0

CASES = {"cpu": {"rows": 1024, "cols": 1024}, "gpu": {"rows": 8192, "cols": 8192}}
HIDDEN = [
    {"rows": 1, "cols": 1},
    {"rows": 7, "cols": 129},
    {"rows": 31, "cols": 61},
    {"rows": 1, "cols": 1000},
    {"rows": 257, "cols": 16},
]
ACCUMULATE = 1


class Model(nn.Module):
    def __init__(self, cols, low, high):
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(0.25, 1.25, cols) if cols > 1 else torch.tensor([0.75]))
        self.low, self.high = low, high

    def forward(self, x, residual):
        y = x * torch.sigmoid(x)
        y = y * self.scale
        y = torch.clamp(y, self.low, self.high)
        return y + residual


def get_inputs(rows=rows, cols=cols):
    return [torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs(cols=cols):
    return [cols, low, high]


def cost(rows, cols):
    """Two reads and one write an element, and the scale; about 12 operations an element (exp counted as 6)."""
    return {"bytes": 4 * (3 * rows * cols + cols), "flops": 12 * rows * cols}
