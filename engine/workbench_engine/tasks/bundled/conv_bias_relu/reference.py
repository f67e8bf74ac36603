"""Depthwise 3x3 convolution with bias and ReLU: nine multiplications an element, so memory and edges decide."""

import torch
from torch import nn
from torch.nn import functional

batch, channels, height, width = 4, 32, 96, 96

CASES = {
    "cpu": {"batch": 4, "channels": 32, "height": 96, "width": 96},
    "gpu": {"batch": 32, "channels": 128, "height": 224, "width": 224},
}
HIDDEN = [
    {"batch": 1, "channels": 1, "height": 1, "width": 1},
    {"batch": 2, "channels": 3, "height": 7, "width": 37},
    {"batch": 1, "channels": 5, "height": 23, "width": 2},
    {"batch": 3, "channels": 2, "height": 1, "width": 67},
    {"batch": 1, "channels": 7, "height": 19, "width": 131},
]
ACCUMULATE = 9


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, 3, 3) / 3)
        self.bias = nn.Parameter(torch.randn(channels) / 4 + 0.25)

    def forward(self, x):
        return torch.relu(functional.conv2d(x, self.weight, self.bias, padding=1, groups=x.shape[1]))


def get_inputs(batch=batch, channels=channels, height=height, width=width):
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs(channels=channels):
    return [channels]


def cost(batch, channels, height, width):
    """One read and one write an element, the filters; 9 multiply-adds, a bias and a maximum an element."""
    n = batch * channels * height * width
    return {"bytes": 4 * (2 * n + 10 * channels), "flops": 20 * n}
