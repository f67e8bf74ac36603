# control: of 26 in place in a copy
# task: softmax_rows
# expect: pass
# mechanism: the input is cloned, the clone overwritten and returned

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x.clone()
        y.sub_(y.amax(dim=-1, keepdim=True)).exp_()
        return y.div_(y.sum(dim=-1, keepdim=True))
