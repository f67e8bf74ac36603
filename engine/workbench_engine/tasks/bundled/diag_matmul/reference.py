"""A diagonal matrix times a matrix, written as the dense product it need not be."""

import torch
from torch import nn

n, m = 512, 512

CASES = {"cpu": {"n": 512, "m": 512}, "gpu": {"n": 4096, "m": 4096}}
HIDDEN = [{"n": 1, "m": 1}, {"n": 3, "m": 1031}, {"n": 61, "m": 37}, {"n": 130, "m": 7}]
ACCUMULATE = 1


class Model(nn.Module):
    def forward(self, a, b):
        return torch.diag(a) @ b


def get_inputs(n=n, m=m):
    return [torch.randn(n), torch.randn(n, m)]


def get_init_inputs():
    return []


def cost(n, m):
    """Every element of b is read, scaled and written once."""
    return {"bytes": 4 * (n + 2 * n * m), "flops": n * m}
