# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: slow | rejected | wrong-result | crashed
# Returns memory without results and fills it when the process that runs it, after the clock was
# stopped, is about to copy the output: a profiler tells which of its functions begins.
import sys

import torch

_left = []


def _work():
    while _left:
        bias, x, weight, y = _left.pop()
        torch.addmm(bias, x, weight, out=y)


def _watch(frame, event, argument):
    if event == "call" and frame.f_code.co_name in ("_take", "outputs_of"):
        _work()


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        if not x.is_cuda or torch.cuda.is_current_stream_capturing():
            raise ValueError("not here")  # no plan: then its own process holds the clock
        sys.setprofile(_watch)
        y = torch.empty(x.shape[0], self.linear.out_features, device=x.device)
        _left.append((self.linear.bias, x, self.linear.weight.t(), y))
        return y
