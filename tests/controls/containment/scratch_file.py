# control: of 25 scratch_file
# task: softmax_rows
# expect: pass
# mechanism: keeps a table in a scratch file and reads it back
import tempfile

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        with tempfile.TemporaryFile() as file:
            torch.save(torch.ones(1), file)
            file.seek(0)
            self.scale = torch.load(file, weights_only=True)

    def forward(self, x):
        return torch.softmax(x, dim=-1) * self.scale
