# control: of 16 the reference again, where that is allowed
# task: softmax_rows
# expect: pass
# mechanism: the reference under the candidate's name: not faster, not a cheat

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
