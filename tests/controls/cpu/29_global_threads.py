# control: of 29 asks for threads and gives them back
# task: softmax_rows
# expect: pass
# mechanism: the number of threads is what it was after each call

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        before = torch.get_num_threads()
        torch.set_num_threads(before)
        return torch.softmax(x, dim=-1)
