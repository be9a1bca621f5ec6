# SPDX-License-Identifier: Apache-2.0
# task: relu_module
# expect: correct
# Waits for the GPU to learn whether anything is negative, as many modules do: it has no plan.
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if bool((x < 0).any().item()):
            return torch.where(x > 0, x, torch.zeros((), device=x.device))
        return x.clone()
