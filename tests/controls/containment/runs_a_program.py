# control: of 34 runs_a_program
# task: softmax_rows
# expect: pass
# mechanism: runs a program that ends, while it is set up
import subprocess

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        done = subprocess.run(["/bin/sh", "-c", "echo 1"], capture_output=True, text=True, check=True)
        self.scale = float(done.stdout)

    def forward(self, x):
        return torch.softmax(x, dim=-1) * self.scale
