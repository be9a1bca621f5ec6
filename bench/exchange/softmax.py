# SPDX-License-Identifier: Apache-2.0
"""Softmax over rows of 65536 floats."""
import torch
import torch.nn as nn

rows = 4096
columns = 65536


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
