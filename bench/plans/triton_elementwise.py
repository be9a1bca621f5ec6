# SPDX-License-Identifier: Apache-2.0
# form: plan
"""One Triton kernel."""
import torch

try:  # the process that reads the task needs none
    import triton
    import triton.language as tl

    @triton.jit
    def relu_kernel(x, y, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.maximum(tl.load(x + at, mask=at < n), 0.0), mask=at < n)
except (ImportError, OSError):
    pass

ROWS = 2048
SIZE = 4096


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y


def get_inputs():
    return [torch.randn(ROWS, SIZE)]


def get_init_inputs():
    return []
