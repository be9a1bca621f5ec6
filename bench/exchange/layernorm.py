# SPDX-License-Identifier: Apache-2.0
"""LayerNorm over the last three axes: 16 groups of 4 million floats."""
import torch
import torch.nn as nn

batch = 16
channels = 64
height = 256
width = 256


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm = nn.LayerNorm(shape)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [(channels, height, width)]
