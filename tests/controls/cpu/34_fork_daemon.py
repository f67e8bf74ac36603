# control: of 34 a child that has ended
# task: softmax_rows
# expect: pass
# mechanism: runs a program while it is loaded and waits for its end

import subprocess

import torch

subprocess.run(["/bin/true"], check=True)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
