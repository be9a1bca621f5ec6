# SPDX-License-Identifier: Apache-2.0
"""Imports torch in two thirds of the time, for a process that others wait for.

A third of the import registers shapes-only forms of operators, written in Python, for the meta
device and PyTorch's compiler. They wait here until something needs them: PyTorch's own packages
that do are watched; who computes on the meta device calls `complete` before.
"""

import ctypes
import gc
import importlib.machinery
import importlib.util
import os
import sys
import threading

_DEFERRED = "torch._meta_registrations"
# FakeTensor, torch.compile and torch.export import one of these first, and they need it. Also who
# imports them without it may meet a circle of imports.
_NEED_IT = {"torch._decomp", "torch._dynamo", "torch._inductor", "torch._prims", "torch._refs"}


class _Finder:
    """Makes the deferred module one that is executed at the first look into it."""

    defers = False

    def find_spec(self, name, path, target=None):
        if self.defers and name in _NEED_IT:
            complete()
        if not self.defers or name != _DEFERRED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec


_finder = _Finder()


def import_torch(device):
    """`device`: "cuda" or "cpu"."""
    if device == "cuda":
        os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")  # as torch does, too late for us
        threading.Thread(target=_wake_gpu, daemon=True).start()
    _finder.defers = True
    sys.meta_path.insert(0, _finder)
    flags = sys.getdlopenflags()
    sys.setdlopenflags((flags & ~os.RTLD_NOW) | os.RTLD_LAZY)
    gc.disable()  # of what an import makes, nothing is garbage
    try:
        import torch  # noqa: F401
    finally:
        gc.enable()
        sys.setdlopenflags(flags)
    gc.freeze()


def complete():
    """Imports what was left out; False if nothing was."""
    module = sys.modules.get(_DEFERRED)
    if not _finder.defers or module is None:
        _finder.defers = False
        return False
    _finder.defers = False
    getattr(module, "__doc__", None)  # LazyLoader executes it now
    return True


def _wake_gpu():
    """Makes the context that torch is going to use; takes as long as a part of its import."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0:
            cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    except (OSError, AttributeError):
        pass  # torch says what is missing
