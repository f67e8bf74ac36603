"""Gram matrices A^T A of a batch of tall, skinny matrices, too narrow to fill a general product's tiles."""

import torch
from torch import nn

batch, rows, k = 4096, 32, 12

CASES = {"cpu": {"batch": 4096, "rows": 32, "k": 12}, "gpu": {"batch": 262144, "rows": 32, "k": 12}}
HIDDEN = [
    {"batch": 1, "rows": 1, "k": 1},
    {"batch": 3, "rows": 37, "k": 12},
    {"batch": 5, "rows": 131, "k": 7},
    {"batch": 2, "rows": 64, "k": 33},
    {"batch": 7, "rows": 19, "k": 16},
]
ACCUMULATE = "rows"


class Model(nn.Module):
    def forward(self, a):
        return a.transpose(1, 2) @ a


def get_inputs(batch=batch, rows=rows, k=k):
    return [torch.randn(batch, rows, k)]


def get_init_inputs():
    return []


def cost(batch, rows, k):
    """A read once, the matrices written once; the product is symmetric, so half of the multiplications suffice."""
    return {"bytes": 4 * (batch * rows * k + batch * k * k), "flops": batch * rows * k * (k + 1)}
