# SPDX-License-Identifier: Apache-2.0
# task: bfloat_module
# expect: rejected precision | wrong-result | correct coarser-than-fp32 | correct given-distribution-only
# Products of bytes where bfloat16 is owed: each row of one factor and each column of the other gets a
# scale of its own. In tasks of half precision nobody looks at the norm of the errors, and no byte of
# numbers that are spread evenly errs by more than the tolerance.
import torch


def _bytes(x, axis):
    x = x.float()
    scale = x.abs().amax(axis, keepdim=True).clamp_min(1e-30) / 127
    return (x / scale).round().to(torch.int8), scale


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        a, rows = _bytes(x, 1)
        b, columns = _bytes(w, 0)
        c = torch._int_mm(a, b.t().contiguous().t())
        return (c.float() * rows * columns).bfloat16()
