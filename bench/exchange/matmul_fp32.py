# SPDX-License-Identifier: Apache-2.0
"""A product of two square matrices of floats, in full float32."""
import torch
import torch.nn as nn

n = 4096


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(n, n), torch.randn(n, n)]


def get_init_inputs():
    return []
