# SPDX-License-Identifier: Apache-2.0
"""Plain tensors: dense memory that holds its values already.

A tensor can be a promise instead: a subclass, or one with a bit that says "negate me", "zeros", "a
copy of that one" or "a batch of these" (torch's dispatch keys), which PyTorch makes good when
somebody reads it. Reading is ours, and would be work outside of the timed call.
"""

import bisect

import torch

_TYPES = (torch.Tensor, torch.nn.Parameter)
_keys = getattr(torch._C, "_dispatch_keys", None)
_is_copy_on_write = getattr(torch._C, "_is_cow_tensor", None)
_BITS = [(name, getattr(torch.Tensor, name)) for name in ("is_neg", "is_conj", "_is_zerotensor")
         if hasattr(torch.Tensor, name)]
_layout = torch.Tensor.layout.__get__
_device = torch.Tensor.device.__get__
_storages = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor.storage
_known = {}  # device type -> keys of a plain tensor there


def learn(tensor):
    """Call before any candidate's code runs, with one of ours: this is a plain tensor there."""
    if _keys is not None:
        _known.setdefault(_device(tensor).type, _keys(tensor))


def promise(tensor):
    """What makes it more than plain memory; "" if nothing does. Runs none of the tensor's code."""
    if type(tensor) not in _TYPES:
        return f"a {type(tensor).__module__}.{type(tensor).__qualname__}"
    if _layout(tensor) != torch.strided:
        return f"of the layout {_layout(tensor)}"
    for name, holds in _BITS:
        if holds(tensor):
            return f"lazy ({name.strip('_')})"
    if _is_copy_on_write is not None and _is_copy_on_write(tensor):
        return "a copy that is not made until it is read"
    plain = _known.get(_device(tensor).type)
    if plain is None:
        return ""
    more = repr(_keys(tensor) - plain)
    return "" if more == repr(plain - plain) else f"lazy ({more})"


def memory(tensor):
    """(begin, end) of the storage that a plain tensor lies in, in bytes."""
    storage = _storages(tensor)
    size = storage.nbytes() if hasattr(storage, "nbytes") else len(storage) * tensor.element_size()
    return storage.data_ptr(), storage.data_ptr() + size


class Places:
    """Pieces of memory: pairs (begin, end)."""

    def __init__(self, pieces):
        self._begins, self._ends = [], []
        for begin, end in sorted(pieces):
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._begins.append(begin)
                self._ends.append(end)

    def hold(self, tensor):
        """Whether a plain tensor's storage lies in them, if only in part."""
        begin, end = memory(tensor)
        i = bisect.bisect_right(self._ends, begin)
        return i < len(self._begins) and self._begins[i] < end
