# SPDX-License-Identifier: Apache-2.0
# form: plan
"""A table that the candidate computes once, from nothing but sizes."""
import torch

ROWS = 2048
SIZE = 4096


class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.arange(x.shape[1], device=x.device, dtype=x.dtype).sqrt()


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(SIZE, device="cuda", dtype=torch.float32).sqrt()

    def forward(self, x):
        return x * self.table


def get_inputs():
    return [torch.randn(ROWS, SIZE)]


def get_init_inputs():
    return []
