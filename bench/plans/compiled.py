# SPDX-License-Identifier: Apache-2.0
# form: plan
"""torch.compile: several Triton kernels, autotuned before the call is captured."""
import torch

ROWS = 1024
SIZE = 1024


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)
        self.norm = torch.nn.LayerNorm(size)

    def forward(self, x):
        return torch.softmax(self.norm(torch.nn.functional.gelu(self.linear(x))), dim=-1)


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)
        self.norm = torch.nn.LayerNorm(size)
        self.compiled = torch.compile(self.body, dynamic=False)

    def body(self, x):
        return torch.softmax(self.norm(torch.nn.functional.gelu(self.linear(x))), dim=-1)

    def forward(self, x):
        return self.compiled(x)


def get_inputs():
    return [torch.randn(ROWS, SIZE)]


def get_init_inputs():
    return [SIZE]
