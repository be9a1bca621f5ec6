# SPDX-License-Identifier: Apache-2.0
# task: padded_module
# expect: correct
# Multiplies everything, in two halves.
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        half = x.shape[1] // 2
        return torch.addmm(x[:, :half] @ w[:half], x[:, half:], w[half:])
