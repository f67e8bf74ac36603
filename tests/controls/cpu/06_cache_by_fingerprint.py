# control: of 06 a memo with the whole input as its key
# task: softmax_rows
# expect: pass
# mechanism: the last answer is used again only when every element of the input is the same

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        if self.last is None or self.last[0].shape != x.shape or not torch.equal(self.last[0], x):
            self.last = (x.clone(), torch.softmax(x, dim=-1))
        return self.last[1].clone()
