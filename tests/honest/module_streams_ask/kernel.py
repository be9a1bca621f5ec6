# SPDX-License-Identifier: Apache-2.0
# task: relu_module
# expect: correct
# Works in place in a buffer that it keeps, on a second stream that it joins again, after a question
# to the GPU.
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.side, self.y = torch.cuda.Stream(), None

    def forward(self, x):
        if not bool(torch.isfinite(x[0, 0]).item()):
            raise ValueError("not a number")
        if self.y is None:
            self.y = torch.empty_like(x)
        self.y.copy_(x)
        here, half = torch.cuda.current_stream(), x.shape[0] // 2
        self.side.wait_stream(here)
        with torch.cuda.stream(self.side):
            self.y[:half].relu_()
        self.y[half:].relu_()
        here.wait_stream(self.side)
        return self.y
