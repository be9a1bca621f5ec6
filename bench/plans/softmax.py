# SPDX-License-Identifier: Apache-2.0
# form: plan
"""PyTorch's softmax."""
import torch

ROWS = 2048
SIZE = 8192


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


class ModelNew(Model):
    pass


def get_inputs():
    return [torch.randn(ROWS, SIZE)]


def get_init_inputs():
    return []
