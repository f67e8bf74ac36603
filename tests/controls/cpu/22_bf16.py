# control: of 22 declared low precision
# task: gram_bf16
# expect: pass
# mechanism: bfloat16 arithmetic on a task that declares it

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(inner, cols) / inner**0.5)

    def forward(self, x):
        return (x.bfloat16() @ self.weight.bfloat16()).float()
