# control: of 05 weights packed as declared
# task: linear_sum_constant
# expect: pass
# mechanism: the weight is folded once and kept: the task says that weights stay

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outer, inner) / inner**0.5)
        self.folded = None

    def prepare(self, shapes):
        self.folded = self.weight.detach().sum(dim=0) * 0.75

    def forward(self, x):
        if self.folded is None:
            self.prepare([x.shape])
        return x @ self.folded
