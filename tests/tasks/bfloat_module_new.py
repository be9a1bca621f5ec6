# SPDX-License-Identifier: Apache-2.0
# What other candidates of bfloat_module are timed against.
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        return x @ w
