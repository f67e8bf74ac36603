# control: of 05 a pool of result buffers
# task: softmax_rows
# expect: pass
# mechanism: results come from a pool that never hands out a buffer that somebody still holds

import sys

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = []

    def forward(self, x):
        out = None
        for index in range(len(self.pool)):
            # The list and the argument of getrefcount hold it; a third holder is the caller.
            if sys.getrefcount(self.pool[index]) == 2 and self.pool[index].shape == x.shape:
                out = self.pool[index]
                break
        if out is None:
            out = torch.empty_like(x)
            if len(self.pool) < 4:
                self.pool.append(out)
        return torch.softmax(x, dim=-1, out=out)
