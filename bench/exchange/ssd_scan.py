# SPDX-License-Identifier: Apache-2.0
"""The state-space scan of Mamba-2 (arXiv:2405.21060), with its gates and skip connection, in bfloat16.

For each head, a state of `states` x `width` values follows S = exp(dt A) S + dt B x^T, and the output is
S^T C + D x, with dt = softplus(step + bias); B and C are shared by the heads of a group. This computes it
chunk by chunk.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 4
tokens = 4096
heads = 64
width = 64
groups = 8
states = 128
chunk = 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.rand(heads, dtype=torch.bfloat16) * 2)
        self.bias = nn.Parameter(torch.rand(heads, dtype=torch.bfloat16) * 2 - 5)
        self.skip = nn.Parameter(torch.rand(heads, dtype=torch.bfloat16))

    def forward(self, x, step, b, c):
        wide = torch.promote_types(x.dtype, torch.float32)
        n = tokens // chunk
        dt = F.softplus(step.to(wide) + self.bias.to(wide))
        g = (-torch.exp(self.rate.to(wide)) * dt).view(batch, n, chunk, heads).permute(0, 3, 1, 2).cumsum(-1)
        # [batch, heads, chunks, chunk, ...]
        moved = (x.to(wide) * dt.unsqueeze(-1)).view(batch, n, chunk, heads, width).permute(0, 3, 1, 2, 4)
        b, c = (y.to(wide).view(batch, n, chunk, groups, states).permute(0, 3, 1, 2, 4)
                .repeat_interleave(heads // groups, 1) for y in (b, c))
        decay = torch.exp((g.unsqueeze(-1) - g.unsqueeze(-2)).tril()).tril()
        inner = ((c @ b.mT) * decay) @ moved
        added = (b * (g[..., -1:] - g).exp().unsqueeze(-1)).mT @ moved
        last = g[..., -1, None, None].exp()
        state, before = torch.zeros_like(added[:, :, 0]), []
        for i in range(n):
            before.append(state)
            state = last[:, :, i] * state + added[:, :, i]
        outer = (c * g.exp().unsqueeze(-1)) @ torch.stack(before, 2)
        out = (inner + outer).permute(0, 2, 3, 1, 4).reshape(batch, tokens, heads, width)
        return (out + self.skip.to(wide)[:, None] * x.to(wide)).to(x.dtype)


def get_inputs():
    return [torch.randn(batch, tokens, heads, width, dtype=torch.bfloat16),
            torch.randn(batch, tokens, heads, dtype=torch.bfloat16)] + [
        torch.randn(batch, tokens, groups, states, dtype=torch.bfloat16) for _ in range(2)]


def get_init_inputs():
    return []
