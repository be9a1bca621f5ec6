# SPDX-License-Identifier: Apache-2.0
# A PyTorch task with weights, on inputs that are never negative.
import torch

ROWS = 512
SIZE = 512


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.rand(ROWS, SIZE)]


def get_init_inputs():
    return [SIZE]
