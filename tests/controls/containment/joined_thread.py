# control: of 2 joined_thread
# task: softmax_rows
# expect: pass
# mechanism: a thread that is joined before the call returns
import threading

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        half = x.shape[0] // 2
        thread = threading.Thread(target=lambda: torch.softmax(x[:half], dim=-1, out=y[:half]))
        thread.start()
        torch.softmax(x[half:], dim=-1, out=y[half:])
        thread.join()
        return y
