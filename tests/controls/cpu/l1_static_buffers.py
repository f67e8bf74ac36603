# control: of - static buffers inside, a fresh result outside
# task: softmax_rows
# expect: pass
# mechanism: input and intermediate values in static buffers; the answer is copied out

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.static = {}

    def forward(self, x):
        if x.shape not in self.static:
            self.static[x.shape] = (torch.empty_like(x), torch.empty_like(x))
        static_input, static_output = self.static[x.shape]
        static_input.copy_(x)
        torch.softmax(static_input, dim=-1, out=static_output)
        return static_output.clone()
