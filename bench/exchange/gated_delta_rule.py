# SPDX-License-Identifier: Apache-2.0
"""The gated delta rule of linear attention (arXiv:2412.06464), with a layer's gates and normalized keys.

For each head, a state S of `width` x `width` values follows S = exp(g) S; S += beta k (v - S^T k)^T, and the
output is S^T q / sqrt(width). This computes it chunk by chunk: within a chunk, the corrections of all its
tokens are one triangular system.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 4
tokens = 4096
heads = 16
width = 128
chunk = 64


class Model(nn.Module):
    def forward(self, q, k, v, a, b):
        kind, wide = q.dtype, torch.promote_types(q.dtype, torch.float32)
        n = tokens // chunk
        # [batch, heads, chunks, chunk, width]
        q, k, v = (x.to(wide).view(batch, n, chunk, heads, width).permute(0, 3, 1, 2, 4) for x in (q, k, v))
        q, k = F.normalize(q, dim=-1, eps=1e-6) * width ** -0.5, F.normalize(k, dim=-1, eps=1e-6)
        a, b = (x.to(wide).view(batch, n, chunk, heads).permute(0, 3, 1, 2) for x in (a, b))
        beta = torch.sigmoid(b).unsqueeze(-1)
        g = -F.softplus(a).cumsum(-1)
        decay = torch.exp((g.unsqueeze(-1) - g.unsqueeze(-2)).tril()).tril()
        system = (beta * (k @ k.mT) * decay).tril(-1)
        right = torch.cat([beta * v, beta * g.exp().unsqueeze(-1) * k], -1)
        corrected, seen = torch.linalg.solve_triangular(
            system, right, upper=False, unitriangular=True).split(width, -1)
        inner = (q @ k.mT) * decay
        q = q * g.exp().unsqueeze(-1)
        k = k * (g[..., -1:] - g).exp().unsqueeze(-1)
        last = g[..., -1, None, None].exp()
        state = torch.zeros_like(q[:, :, 0, :1]).expand(-1, -1, width, -1)
        out = []
        for i in range(n):
            new = corrected[:, :, i] - seen[:, :, i] @ state
            out.append(q[:, :, i] @ state + inner[:, :, i] @ new)
            state = last[:, :, i] * state + k[:, :, i].mT @ new
        return torch.stack(out, 2).permute(0, 2, 3, 1, 4).reshape(batch, tokens, heads, width).to(kind)


def get_inputs():
    return [torch.randn(batch, tokens, heads, width, dtype=torch.bfloat16) for _ in range(3)] + [
        torch.randn(batch, tokens, heads, dtype=torch.bfloat16) - 3, torch.randn(batch, tokens, heads, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
