# SPDX-License-Identifier: Apache-2.0
# task: relu_module
# expect: correct
# A Triton kernel, launched where the GPU says that there is something to do.
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.maximum(v, 0.0), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not bool((x < 0).any().item()):
            return x.clone()
        y = torch.empty_like(x)
        n = x.numel()
        relu_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
        return y
