# SPDX-License-Identifier: Apache-2.0
"""Imports torch in two thirds of the time, for a process on the critical path.

A third of the import registers shapes-only forms of operators, written in Python, for the meta
device and PyTorch's compiler. Defers them until needed: an import hook watches for PyTorch packages
that need them; code that computes on the meta device must call `complete` first.
"""

import ctypes
import gc
import importlib.machinery
import importlib.util
import os
import sys
import threading

_DEFERRED = "torch._meta_registrations"
# FakeTensor, torch.compile and torch.export first import one of these, which need it. Importing
# them without it can also end in a circular import.
_NEED_IT = {"torch._decomp", "torch._dynamo", "torch._inductor", "torch._prims", "torch._refs"}


class _Finder:
    """Makes the deferred module execute on first access."""

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
        os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")  # torch does the same, too late for us
        threading.Thread(target=_wake_gpu, daemon=True).start()
    _finder.defers = True
    sys.meta_path.insert(0, _finder)
    flags = sys.getdlopenflags()
    sys.setdlopenflags((flags & ~os.RTLD_NOW) | os.RTLD_LAZY)
    gc.disable()  # an import creates no garbage
    try:
        import torch  # noqa: F401
    finally:
        gc.enable()
        sys.setdlopenflags(flags)
    gc.freeze()


def complete():
    """Imports what was deferred; False if nothing was."""
    module = sys.modules.get(_DEFERRED)
    if not _finder.defers or module is None:
        _finder.defers = False
        return False
    _finder.defers = False
    getattr(module, "__doc__", None)  # makes LazyLoader execute it
    return True


def _wake_gpu():
    """Creates torch's context in parallel with its import."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0:
            cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    except (OSError, AttributeError):
        pass  # torch will report what is missing
