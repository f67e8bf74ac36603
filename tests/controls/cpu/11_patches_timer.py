# control: of 11 times itself, changes nothing
# task: softmax_rows
# expect: pass
# mechanism: reads the clock for a statistic of its own

import time

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.spent = 0.0

    def forward(self, x):
        start = time.perf_counter()
        out = torch.softmax(x, dim=-1)
        self.spent += time.perf_counter() - start
        return out
