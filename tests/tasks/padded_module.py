# SPDX-License-Identifier: Apache-2.0
# A product of which one factor is padded with columns of zeros.
import torch

ROWS = 1024
HELD = 512
PADDED = 2048
COLS = 1024


class Model(torch.nn.Module):
    def forward(self, x, w):
        return x @ w


def get_inputs():
    x = torch.zeros(ROWS, PADDED)
    x[:, :HELD] = torch.rand(ROWS, HELD)
    return [x, torch.randn(PADDED, COLS)]


def get_init_inputs():
    return []
