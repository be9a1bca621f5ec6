# SPDX-License-Identifier: Apache-2.0
# form: plan
"""A matrix product by cuBLAS, with its workspace."""
import torch

SIZE = 2048


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


class ModelNew(Model):
    pass


def get_inputs():
    return [torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)]


def get_init_inputs():
    return []
