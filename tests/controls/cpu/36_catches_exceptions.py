# control: of 36 an exception that is handled
# task: softmax_rows
# expect: pass
# mechanism: raises and catches within the call

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        try:
            raise LookupError
        except LookupError:
            return torch.softmax(x, dim=-1)
