# SPDX-License-Identifier: Apache-2.0
# A PyTorch task that only moves data.
import torch

ROWS = 512
COLS = 1024


class Model(torch.nn.Module):
    def forward(self, x):
        return (x * 1.0).t().contiguous()


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
