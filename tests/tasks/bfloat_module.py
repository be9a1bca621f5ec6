# SPDX-License-Identifier: Apache-2.0
# A PyTorch task in bfloat16, on inputs that are never negative.
import torch

ROWS = 512
DEPTH = 2048
COLS = 512


class Model(torch.nn.Module):
    def forward(self, x, w):
        return x @ w


def get_inputs():
    return [torch.rand(ROWS, DEPTH).bfloat16(), torch.rand(DEPTH, COLS).bfloat16()]


def get_init_inputs():
    return []
