# SPDX-License-Identifier: Apache-2.0
# form: host-form | wrong-result
"""Packs its weights before the first call. They differ between sets, so that it may be wrong."""
import torch

ROWS = 1024
SIZE = 1024


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x)


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)
        self.register_buffer("packed", self.linear.weight.detach().t().contiguous(),
                             persistent=False)

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.packed)


def get_inputs():
    return [torch.randn(ROWS, SIZE)]


def get_init_inputs():
    return [SIZE]
