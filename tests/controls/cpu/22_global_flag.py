# control: of 22 a flag set for one call
# task: matmul_square
# expect: pass
# mechanism: the precision flag is raised within the call and put back

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        out = a @ b
        torch.set_float32_matmul_precision(before)
        return out
