# SPDX-License-Identifier: Apache-2.0
# form: plan
"""Parameters that the candidate has under the module's names."""
import torch

ROWS = 1024
SIZE = 1024


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.linear(x))


class ModelNew(Model):
    pass


def get_inputs():
    return [torch.randn(ROWS, SIZE)]


def get_init_inputs():
    return [SIZE]
