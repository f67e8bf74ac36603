# control: of 12 checks itself in prepare
# task: softmax_rows
# expect: pass
# mechanism: compares its fast way with its careful way before it is timed, on made-up data

import torch


def by_hand(x):
    e = (x - x.amax(dim=-1, keepdim=True)).exp_()
    return e.div_(e.sum(dim=-1, keepdim=True))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trusted = False

    def prepare(self, shapes):
        x = torch.randn(shapes[0])
        self.trusted = torch.allclose(by_hand(x), torch.softmax(x, dim=-1), atol=1e-6)

    def forward(self, x):
        return by_hand(x) if self.trusted else torch.softmax(x, dim=-1)
