# control: of 03 a subclass inside, a Tensor outside
# task: softmax_rows
# expect: pass
# mechanism: works on a Tensor subclass and returns a plain tensor

import torch


class Named(torch.Tensor):
    pass


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x.as_subclass(Named), dim=-1).as_subclass(torch.Tensor)
