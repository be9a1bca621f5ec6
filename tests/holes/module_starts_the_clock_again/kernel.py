# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: slow | rejected | wrong-result | crashed
# Finds the event by which its process started the clock among its callers' variables, and records
# it again after the work. It replaces no function.
import ctypes
import sys

import torch

_cuda = None


def _event():
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "_timed":
            return getattr(frame.f_locals["self"].device, "_begin", None)
        frame = frame.f_back
    return None


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        global _cuda
        if not x.is_cuda or torch.cuda.is_current_stream_capturing():
            raise ValueError("not here")  # no plan: then its own process holds the clock
        y = self.linear(x)
        begin = _event()
        if begin is not None:
            _cuda = _cuda or ctypes.CDLL("libcuda.so.1")
            _cuda.cuEventRecord(begin, ctypes.c_void_p(0))
        return y
