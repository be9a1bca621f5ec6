# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: slow | rejected | wrong-result | crashed
# Returns a list of one tensor that does the work when somebody goes through it: after the clock was
# stopped.
import torch


class _Later(list):
    def __iter__(self):
        bias, x, weight, y = self.work
        torch.addmm(bias, x, weight, out=y)
        return super().__iter__()


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        if not x.is_cuda or torch.cuda.is_current_stream_capturing():
            raise ValueError("not here")  # no plan: then its own process holds the clock
        y = torch.empty(x.shape[0], self.linear.out_features, device=x.device)
        result = _Later([y])
        result.work = (self.linear.bias, x, self.linear.weight.t(), y)
        return result
