# SPDX-License-Identifier: Apache-2.0
"""Which operator of a module launches which of a captured call's steps, and what that operator needs
at least: the bytes of its tensors and the operations of its products (src/core/evidence/operators.h)."""

import contextlib

import torch

from .tracing import _FLOPS, Trace, tensors_in

_MOST = 2000  # operators of a call
_storage_of = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor.storage

# Where torch has no tag for it.
_REDUCTIONS = ("sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "var",
               "var_mean", "std", "std_mean", "norm", "linalg_vector_norm", "logsumexp", "softmax",
               "_softmax", "_log_softmax", "native_layer_norm", "native_group_norm",
               "native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm",
               "_fused_rms_norm",
               "cumsum", "cumprod", "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices",
               "max_pool3d_with_indices", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "any",
               "all")
_COPIES = ("copy_", "_to_copy", "clone", "cat", "stack", "constant_pad_nd", "fill_", "zero_",
           "index_select", "repeat", "roll", "flip")


class Operators(Trace):
    """Use as a context around a captured call. `count`: the number of steps captured so far.
    `calls` then has those operators that launched any, in order."""

    def __init__(self, model, count):
        super().__init__(model if isinstance(model, torch.nn.Module) else None)
        self.calls = []
        self._steps = count
        self._written = {}  # by storage: the operator that wrote it last

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        before = self._steps()
        given = [about(tensor) for tensor in tensors_in(list(args) + list(kwargs.values()))]
        result = func(*args, **kwargs)
        after = self._steps()
        if 0 <= before < after and len(self.calls) < _MOST:
            self._note(func, before, after, given, args, result)
        return result

    def _note(self, func, before, after, given, args, result):
        name = getattr(getattr(func, "overloadpacket", func), "__name__", str(func))
        made = tensors_in(result)
        call = {"name": name, "where": self._stack[-1] if self._stack else "",
                "kind": kind_of(name, getattr(func, "tags", ()), args), "first": before,
                "nodes": after - before, "read": 0, "written": 0, "flops": 0, "from": []}
        results = {about(tensor)[0] for tensor in made}
        for storage, size in set(given):
            if storage in results and name in ("copy_", "fill_", "zero_"):
                continue  # only written
            call["read"] += size
            if storage in self._written:
                call["from"].append([self._written[storage], size])
        for storage, size in {about(tensor) for tensor in made}:
            call["written"] += size
            self._written[storage] = len(self.calls)
        if name in _FLOPS and made:
            with contextlib.suppress(Exception):  # other forms of arguments: not counted
                call["flops"] = int(_FLOPS[name](args, made[0]))
        self.calls.append(call)


def about(tensor):
    """A tensor's storage, and its bytes: those of an expanded one count once."""
    try:
        storage = _storage_of(tensor)
        return storage.data_ptr(), min(tensor.numel() * tensor.element_size(), storage.nbytes())
    except (RuntimeError, NotImplementedError):
        return 0, 0


def kind_of(name, tags, args):
    """pointwise, reduction, product, copy or other."""
    plain = name.rstrip("_")
    if "batch_norm" in name and (name.endswith("no_training") or args[5:6] == (False,)):
        return "pointwise"  # with the statistics of the training
    if name in _FLOPS:
        return "product"
    if name in _COPIES or plain in _COPIES:
        return "copy"
    tag = getattr(torch, "Tag", None)
    if tag is not None and getattr(tag, "pointwise", None) in tags:
        return "pointwise"
    if plain in _REDUCTIONS or (tag is not None and hasattr(tag, "reduction")
                                and tag.reduction in tags):
        return "reduction"
    return "other"
