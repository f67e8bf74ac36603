# control: of 27 a graph with copies in and out
# task: softmax_rows
# expect: pass
# mechanism: each call copies its input in, replays, and returns a copy
# backend: cuda

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def forward(self, x):
        if x.shape not in self.graphs:
            kept = x.clone()
            torch.softmax(kept, dim=-1)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = torch.softmax(kept, dim=-1)
            self.graphs[x.shape] = (graph, kept, out)
        graph, kept, out = self.graphs[x.shape]
        kept.copy_(x)
        graph.replay()
        return out.clone()
