# control: of 23 prints_a_little_module
# task: softmax_rows
# expect: pass
# mechanism: prints one line while it is set up

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        print("softmax by rows")

    def forward(self, x):
        return torch.softmax(x, dim=-1)
