# control: of 05 weights folded in the call
# task: linear_sum
# expect: pass
# mechanism: the sum is taken before the product, anew in each call

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outer, inner) / inner**0.5)

    def forward(self, x):
        return x @ (self.weight.sum(dim=0) * 0.75)
