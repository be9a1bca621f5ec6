# SPDX-License-Identifier: Apache-2.0
"""flash-linear-attention's own Triton kernels for gated_delta_rule.py, as they ship.

Needs Triton and `pip install --no-deps fla-core flash-linear-attention` (fla-core 0.6.0 was measured).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from fla.ops.gated_delta_rule import chunk_gated_delta_rule


class ModelNew(nn.Module):
    def forward(self, q, k, v, a, b):
        out, _ = chunk_gated_delta_rule(q, k, v, -F.softplus(a.float()), torch.sigmoid(b.float()),
                                        use_qk_l2norm_in_kernel=True)
        return out
