# SPDX-License-Identifier: Apache-2.0
# form: plan
"""A convolution by cuDNN, and two kernels of PyTorch."""
import torch

BATCH = 16
CHANNELS = 64
SIZE = 56


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return torch.nn.functional.max_pool2d(torch.relu(self.conv(x)), 2)


class ModelNew(Model):
    pass


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
