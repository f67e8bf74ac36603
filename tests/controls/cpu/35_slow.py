# control: of 35 honest and slow in Python
# task: softmax_rows
# expect: pass
# mechanism: row by row

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.stack([torch.softmax(row, dim=-1) for row in x])
