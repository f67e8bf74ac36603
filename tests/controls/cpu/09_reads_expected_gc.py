# control: of 09 garbage collection off during a call
# task: softmax_rows
# expect: pass
# mechanism: uses gc for what it is for

import gc

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        gc.disable()
        out = torch.softmax(x, dim=-1)
        gc.enable()
        return out
