# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: correct
# Refuses what is not finite, which it must ask the GPU about: no plan, but plain work with weights.
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        y = self.linear(x)
        if not bool(torch.isfinite(y).all().item()):
            raise ValueError("an overflow")
        return y
