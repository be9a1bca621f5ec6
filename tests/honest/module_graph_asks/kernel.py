# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: correct
# Replays a CUDA graph of its own over its weights, where the GPU says that the input is finite.
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)
        self.graph = None

    def forward(self, x):
        if not bool(torch.isfinite(x[0, 0]).item()):
            raise ValueError("not a number")
        if self.graph is None:
            self.x = x.clone()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.linear(self.x)
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.y = self.linear(self.x)
        self.x.copy_(x)
        self.graph.replay()
        return self.y
