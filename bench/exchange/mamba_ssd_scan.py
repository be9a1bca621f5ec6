# SPDX-License-Identifier: Apache-2.0
"""Mamba-2's own Triton kernels for ssd_scan.py, as mamba_ssm ships them.

Needs Triton and mamba_ssm's Python files (written for 2.3.2.post1): the package's compiled parts and its many
imports are left out, and only its chunked scan is loaded. It tunes itself in its first call: --timeout 120.
"""
import importlib.machinery
import importlib.util
import os
import sys

import torch
import torch.nn as nn


def load():
    found = importlib.util.find_spec("mamba_ssm")
    if found is None:
        raise ImportError("mamba_ssm is not installed; next: pip install --no-deps mamba-ssm, or leave this file out")
    folder = next(iter(found.submodule_search_locations))
    for name in ("mamba_ssm", "mamba_ssm.ops", "mamba_ssm.utils"):
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)  # with one it can be found a second time
        spec.submodule_search_locations = [os.path.join(folder, *name.split(".")[1:])]
        sys.modules[name] = importlib.util.module_from_spec(spec)
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined
    return mamba_chunk_scan_combined


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.rand(64, dtype=torch.bfloat16))
        self.bias = nn.Parameter(torch.rand(64, dtype=torch.bfloat16))
        self.skip = nn.Parameter(torch.rand(64, dtype=torch.bfloat16))
        self.scan = load()

    def forward(self, x, step, b, c):
        return self.scan(x, step, -torch.exp(self.rate.float()), b, c, 256, D=self.skip, dt_bias=self.bias,
                         dt_softplus=True)
