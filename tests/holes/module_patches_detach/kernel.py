# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: slow | rejected | wrong-result | crashed
# Does the work in Tensor.detach, which its process calls on results when it copies them: after the
# clock was stopped.
import torch

_left = {}
_detach = torch.Tensor.detach


def _later(self):
    work = _left.pop(self.data_ptr(), None)
    if work is not None:
        torch.addmm(*work, out=self)
    return _detach(self)


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        if not x.is_cuda or torch.cuda.is_current_stream_capturing():
            raise ValueError("not here")  # no plan: then its own process holds the clock
        torch.Tensor.detach = _later
        y = torch.empty(x.shape[0], self.linear.out_features, device=x.device)
        _left.clear()
        _left[y.data_ptr()] = (self.linear.bias, x, self.linear.weight.t())
        return y
