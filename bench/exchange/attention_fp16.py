# SPDX-License-Identifier: Apache-2.0
"""Attention without a mask: 4 x 32 heads, 4096 tokens, 128 values a head, in half precision."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 4
heads = 32
tokens = 4096
width = 128


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [torch.randn(batch, heads, tokens, width, dtype=torch.float16) for _ in range(3)]


def get_init_inputs():
    return []
