# control: of - shared_memory
# task: softmax_rows
# expect: pass
# mechanism: keeps a small table in shared memory
import multiprocessing.shared_memory

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        memory = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
        memory.buf[0] = 1
        self.scale = float(memory.buf[0])
        memory.close()
        memory.unlink()

    def forward(self, x):
        return torch.softmax(x, dim=-1) * self.scale
