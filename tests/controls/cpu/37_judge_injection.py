# control: of 37 comments that explain
# task: softmax_rows
# expect: pass
# mechanism: says what it does and why

"""Softmax over rows. The maximum is taken out first, so that large inputs do not overflow."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        # Dividing in place saves one pass over memory.
        e = torch.exp(x - x.amax(dim=-1, keepdim=True))
        return e.div_(e.sum(dim=-1, keepdim=True))
