# SPDX-License-Identifier: Apache-2.0
"""One token's attention over a paged cache: grouped queries, sequences of unlike lengths, in bfloat16.

Page `table[s, i]` holds tokens 16 i to 16 i + 15 of sequence s; entries past the sequence's last page are 0.
All pages are in use, in random order; 64 sequences have 512 to 7680 tokens.
"""
import torch
import torch.nn as nn

sequences = 64
heads = 32
kv_heads = 8
width = 128
page = 16
most = 7680


class Model(nn.Module):
    def forward(self, q, keys, values, table, lengths):
        wide = torch.promote_types(q.dtype, torch.float32)
        index = table.long()
        k = keys[index].flatten(1, 2)
        v = values[index].flatten(1, 2)
        grouped = q.view(sequences, kv_heads, heads // kv_heads, width)
        scores = torch.einsum("bhgd,blhd->bhgl", grouped, k).to(wide) * width ** -0.5
        valid = torch.arange(k.shape[1], device=q.device) < lengths.unsqueeze(-1)
        weights = torch.softmax(scores.masked_fill(~valid[:, None, None], float("-inf")), -1).to(q.dtype)
        return torch.einsum("bhgl,blhd->bhgd", weights, v).reshape(sequences, heads, width)


def get_inputs():
    counts = torch.linspace(512 // page, most // page, sequences).round().int()[torch.randperm(sequences)]
    pages = int(counts.sum())
    free = torch.randperm(pages).int()
    table = torch.zeros(sequences, most // page, dtype=torch.int32)
    begin = 0
    for s, count in enumerate(counts.tolist()):
        table[s, :count] = free[begin:begin + count]
        begin += count
    lengths = counts * page - torch.randint(0, page, (sequences,), dtype=torch.int32)
    return [torch.randn(sequences, heads, width, dtype=torch.bfloat16)] + [
        torch.randn(pages, page, kv_heads, width, dtype=torch.bfloat16) for _ in range(2)] + [table, lengths.int()]


def get_init_inputs():
    return []
