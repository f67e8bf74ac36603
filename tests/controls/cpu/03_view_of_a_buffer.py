# control: of 03 a non-contiguous result
# task: softmax_rows
# expect: pass
# mechanism: returns a transposed view of a fresh tensor: strides of its own, contents right

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x.t().contiguous(), dim=0).t()
