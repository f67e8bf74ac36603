# control: of 02 a Python thread joined before the return
# task: softmax_rows
# expect: pass
# mechanism: half of the rows in a thread that is waited for

import threading

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        half = x.shape[0] // 2
        helper = threading.Thread(target=lambda: torch.softmax(x[:half], dim=-1, out=out[:half]))
        helper.start()
        torch.softmax(x[half:], dim=-1, out=out[half:])
        helper.join()
        return out
