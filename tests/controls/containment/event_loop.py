# control: of 26 event_loop
# task: softmax_rows
# expect: pass
# mechanism: runs an event loop, which makes a pair of local sockets
import asyncio

import torch
from torch import nn


async def one():
    await asyncio.sleep(0)
    return 1.0


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = asyncio.run(one())

    def forward(self, x):
        return torch.softmax(x, dim=-1) * self.scale
