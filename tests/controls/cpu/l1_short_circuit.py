# control: of - an algebraic short cut
# task: linear_sum
# expect: pass
# mechanism: the sum is taken before the product, which the algebra allows

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outer, inner) / inner**0.5)

    def forward(self, x):
        return torch.mv(x, self.weight.sum(dim=0)).mul_(0.75)
