# SPDX-License-Identifier: Apache-2.0
# What other candidates of linear_module are timed against.
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x)
