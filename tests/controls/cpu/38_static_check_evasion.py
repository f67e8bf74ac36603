# control: of 38 harmless strings
# task: softmax_rows
# expect: pass
# mechanism: strings with # and // in them

import torch

LABEL = "# softmax // rows"


class ModelNew(torch.nn.Module):
    def forward(self, x):
        assert LABEL.startswith("#")
        return torch.softmax(x, dim=-1)
