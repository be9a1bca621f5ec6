# SPDX-License-Identifier: Apache-2.0
"""VeOmni's own Triton kernel for moe_dw1.py, as it ships: what a kernel of that task has to beat.

Needs Triton and an installed `veomni` (pip install --no-deps is enough): the package's many imports are
left out, and only its grouped product is loaded.
"""
import importlib.machinery
import importlib.util
import logging
import os
import sys
import types

import torch
import torch.nn as nn


def load():
    found = importlib.util.find_spec("veomni")
    if found is None:
        raise ImportError("veomni is not installed; next: pip install --no-deps veomni, or leave this file out")
    folder = next(iter(found.submodule_search_locations))
    for name in ("veomni", "veomni.ops", "veomni.ops.kernels", "veomni.ops.kernels.moe"):
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)  # with one it can be found a second time
        spec.submodule_search_locations = [os.path.join(folder, *name.split(".")[1:])]
        sys.modules[name] = importlib.util.module_from_spec(spec)
    utils = types.ModuleType("veomni.utils")
    utils.__path__ = []
    utils.device = types.ModuleType("veomni.utils.device")
    utils.device.get_torch_device = lambda: torch.cuda
    utils.device.get_device_name = torch.cuda.get_device_name
    utils.device.synchronize = torch.cuda.synchronize
    utils.device.IS_MLU_AVAILABLE = False
    utils.logging = types.ModuleType("veomni.utils.logging")
    utils.logging.get_logger = logging.getLogger
    for each in (utils, utils.device, utils.logging):
        sys.modules[each.__name__] = each
    from veomni.ops.kernels.moe._kernels.kernel.group_gemm import group_gemm_same_mn
    return group_gemm_same_mn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.product = load()

    def forward(self, grad, x, ends):
        result = torch.empty(ends.shape[0], grad.shape[1], x.shape[1], dtype=grad.dtype, device=grad.device)
        self.product(a=grad, b=x, c=result, cumsum_K=ends, max_K=grad.shape[0], transpose_a=True)
        return result
