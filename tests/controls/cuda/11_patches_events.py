# control: of 11 events of its own
# task: softmax_rows
# expect: pass
# mechanism: times itself with events in prepare and changes nothing
# backend: cuda

import torch


class ModelNew(torch.nn.Module):
    def prepare(self, shapes):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        x = torch.randn(shapes[0], device="cuda")
        start.record()
        torch.softmax(x, dim=-1)
        end.record()
        end.synchronize()
        self.spent_ms = start.elapsed_time(end)

    def forward(self, x):
        return torch.softmax(x, dim=-1)
