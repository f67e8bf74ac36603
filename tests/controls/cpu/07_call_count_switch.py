# control: of 07 autotuning in the declared untimed phase
# task: softmax_rows
# expect: pass
# mechanism: prepare(shapes) chooses between two ways by timing them on made-up data

import time

import torch


def library(x):
    return torch.softmax(x, dim=-1)


def by_hand(x):
    e = (x - x.amax(dim=-1, keepdim=True)).exp_()
    return e.div_(e.sum(dim=-1, keepdim=True))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.way = library

    def prepare(self, shapes):
        x = torch.randn(shapes[0])
        spent = {}
        for way in (library, by_hand):
            start = time.perf_counter()
            for _ in range(3):
                way(x)
            spent[way] = time.perf_counter() - start
        self.way = min(spent, key=spent.get)

    def forward(self, x):
        return self.way(x)
