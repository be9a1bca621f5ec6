# SPDX-License-Identifier: Apache-2.0
"""Weight gradient of the first layer of a mixture of experts, in bfloat16.

Rows are sorted by expert; `ends[e]` is one past the last row of expert e, and some experts have many more
rows than others. Its weight gradient is grad[rows of e]^T x[rows of e], zero where it has no rows.
The defaults are Qwen3-30B-A3B's; --set replaces them.
"""
import torch
import torch.nn as nn

rows = 32768
experts = 128
hidden = 2048
ffn = 768


class Model(nn.Module):
    def forward(self, grad, x, ends):
        result = grad.new_zeros(ends.shape[0], grad.shape[1], x.shape[1])
        begin = 0
        for expert, end in enumerate(ends.tolist()):
            result[expert] = grad[begin:end].t() @ x[begin:end]
            begin = end
        return result


def get_inputs():
    share = torch.softmax(0.5 * torch.randn(experts), dim=0)
    chosen = torch.multinomial(share, rows, replacement=True)
    counts = torch.zeros(experts).scatter_add_(0, chosen, torch.ones(rows))
    ends = torch.cumsum(counts, dim=0).to(torch.int32)
    return [torch.randn(rows, ffn, dtype=torch.bfloat16), torch.randn(rows, hidden, dtype=torch.bfloat16), ends]


def get_init_inputs():
    return []
