# control: of - batch normalisation as the task runs it
# task: linear_bn_train
# expect: pass
# mechanism: statistics of the batch in training mode, the running ones otherwise

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.norm = nn.BatchNorm1d(outer, track_running_stats=True, momentum=0.0)

    def forward(self, x):
        y = torch.addmm(self.linear.bias, x, self.linear.weight.t())
        if self.training:
            variance, mean = torch.var_mean(y, dim=0, correction=0)
        else:
            variance, mean = self.norm.running_var, self.norm.running_mean
        return (y - mean) * (torch.rsqrt(variance + self.norm.eps) * self.norm.weight) + self.norm.bias
