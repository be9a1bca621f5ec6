# SPDX-License-Identifier: Apache-2.0
# task: transpose_module
# expect: correct
# Gives its result as a view: it is copied, in the time of the call.
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.t()
