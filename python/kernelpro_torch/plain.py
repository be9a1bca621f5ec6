# SPDX-License-Identifier: Apache-2.0
"""Plain tensors: dense memory that holds its values already.

A tensor can be a promise instead: a subclass, or one with a bit that says "negate me", "zeros", "a
copy of that one" or "a batch of these" (torch's dispatch keys), which PyTorch makes good when
somebody reads it. A plan has no place for those.
"""

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


def may_move(tensor, place):
    """Whether a module's tensor can get `place`'s memory without anyone noticing: it is plain, of
    the same type, dense, and no other tensor shares its memory."""
    if promise(tensor) or tensor.dtype != place.dtype or tensor.device != place.device:
        return False
    if not tensor.is_contiguous() or tensor.shape != place.shape or tensor.storage_offset() != 0:
        return False
    storage = _storages(tensor)
    whole = getattr(storage, "nbytes", lambda: -1)() == tensor.numel() * tensor.element_size()
    return whole and _lone is not None and _users(tensor) == _lone


def _users(tensor):
    """How many tensors share its memory, and what Python adds to that."""
    return torch._C._storage_Use_Count(_storages(tensor)._cdata)


def _count_lone():
    """What _users says of a tensor that shares its memory with no other; None if it cannot tell."""
    try:
        tensor = torch.empty(4)
        lone = _users(tensor)
        view = tensor.view(2, 2)
        return lone if _users(tensor) > lone and view is not None else None
    except Exception:
        return None


_lone = _count_lone()
