# SPDX-License-Identifier: Apache-2.0
"""The first convolution of AlexNet: 11 by 11, stride 4, on images of 224 by 224."""
import torch
import torch.nn as nn

batch = 100
size = 224


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, 3, size, size)]


def get_init_inputs():
    return []
