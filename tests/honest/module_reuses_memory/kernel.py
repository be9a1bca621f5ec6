# SPDX-License-Identifier: Apache-2.0
# task: relu_module
# expect: correct
# Keeps a buffer for its result between calls, and fills it anew.
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.y = None

    def forward(self, x):
        if self.y is None or self.y.shape != x.shape:
            self.y = torch.empty_like(x)
        torch.clamp(x, min=0, out=self.y)
        return self.y
