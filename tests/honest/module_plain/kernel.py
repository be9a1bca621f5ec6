# SPDX-License-Identifier: Apache-2.0
# task: relu_module
# expect: correct
# PyTorch's own operation, under another name.
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=0)
