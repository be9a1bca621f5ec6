# SPDX-License-Identifier: Apache-2.0
# A PyTorch task of one operation.
import torch

ROWS = 256
COLS = 4096


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
