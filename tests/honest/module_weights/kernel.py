# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: correct
# Uses its weights as parameters of an operation of its own.
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.linear.weight.t())
