# control: of 05 weights folded again at every load
# task: linear_sum_constant
# expect: pass
# mechanism: load_state_dict makes the folded weight anew: new parameters change the answer

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outer, inner) / inner**0.5)
        self.register_load_state_dict_post_hook(lambda module, keys: module.fold())
        self.fold()

    def fold(self):
        self.folded = self.weight.detach().sum(dim=0) * 0.75

    def forward(self, x):
        return x @ self.folded
