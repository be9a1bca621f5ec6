# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: correct
# fp32 from TF32: each factor as a rounded part and a rest, three products, by flags that it sets for
# itself and puts back.
import torch


def _parts(x):
    bits = (x.view(torch.int32) + 0x1000) & ~0x1FFF
    high = bits.view(torch.float32)
    return high, x - high


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        matmul = torch.backends.cuda.matmul
        before = matmul.allow_tf32
        matmul.allow_tf32 = True
        try:
            high, low = _parts(x.contiguous())
            w_high, w_low = _parts(self.linear.weight.detach().contiguous())
            small = torch.mm(low, w_high.t()) + torch.mm(high, w_low.t())
            return torch.mm(high, w_high.t()) + small + self.linear.bias.detach()
        finally:
            matmul.allow_tf32 = before
