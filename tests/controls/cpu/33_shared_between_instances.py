# control: of 33 a table shared by all instances
# task: linear_sum
# expect: pass
# mechanism: a constant is made once for the class; nothing of an instance is in it

import torch


class ModelNew(torch.nn.Module):
    half = torch.tensor(0.75)

    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outer, inner) / inner**0.5)

    def forward(self, x):
        return x @ (self.weight.sum(dim=0) * ModelNew.half)
