# control: of 05 a workspace by shape
# task: softmax_rows
# expect: pass
# mechanism: a workspace for intermediate values is kept by shape; results are fresh tensors

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.workspaces = {}

    def forward(self, x):
        work = self.workspaces.setdefault(x.shape, torch.empty_like(x))
        torch.sub(x, x.amax(dim=-1, keepdim=True), out=work)
        work.exp_()
        return work / work.sum(dim=-1, keepdim=True)
