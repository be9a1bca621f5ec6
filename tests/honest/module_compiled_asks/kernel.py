# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: correct
# torch.compile around the product, and a question to the GPU beside it.
import torch


def _forward(x, weight, bias):
    return torch.addmm(bias, x, weight.t())


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)
        self.compiled = torch.compile(_forward, dynamic=False)

    def forward(self, x):
        if not bool(torch.isfinite(x[0, 0]).item()):
            raise ValueError("not a number")
        return self.compiled(x, self.linear.weight, self.linear.bias)
