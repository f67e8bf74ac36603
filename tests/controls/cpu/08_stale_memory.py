# control: of 08 torch.empty, filled
# task: softmax_rows
# expect: pass
# mechanism: an uninitialised tensor that is written in full

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        for start in range(0, x.shape[0], 256):
            torch.softmax(x[start : start + 256], dim=-1, out=out[start : start + 256])
        return out
