# control: of 18 library calls where they are allowed
# task: matmul_square
# expect: pass
# mechanism: a product by the library, labelled as such

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.mm(a, b)
