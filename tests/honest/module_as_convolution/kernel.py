# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: correct
# A linear layer as a convolution with one point, by another library than the matrix product's.
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        columns = x.t().unsqueeze(0).contiguous()  # one image, a channel for each feature
        y = torch.nn.functional.conv1d(columns, self.linear.weight.unsqueeze(2), self.linear.bias)
        return y.squeeze(0).t().contiguous()
