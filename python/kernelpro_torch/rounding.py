# SPDX-License-Identifier: Apache-2.0
"""Runs a module as if every operator had rounded its operands.

Rounded arithmetic is exact arithmetic on perturbed operands. Under `Rounding`, every operator that
rounds gets its floating operands multiplied by 1 +- e, with a random sign per element, e = base +
sqrt(n) u, where u = 2^-24 and n is the length of its sums; the result of a sum is also multiplied
by 1 +- sqrt(n) u. The change in the module's results is the error allowed to an honest kernel. It
scales with the terms summed, even if the sum cancels, and propagates through the rest of the module
with the slope at these values.

Why this covers every order of summation: a left-to-right fp32 sum of n terms errs by about 0.4
sqrt(n) u of the terms' root of squares (terms of either sign) or 0.23 sqrt(n) u of the sum (terms
of one sign), so four standard deviations are 1.6 and 0.9 of these units, and the largest of many
random changes to the operands is itself four to five standard deviations. Why it admits nothing
coarser than fp32: TF32 rounds operands by 2^-12 on average, which exceeds e up to n = 10 million.

The norm of the errors is known better than the largest of them. A left-to-right sum errs by 0.3
sqrt(n) u of the terms' root of squares, in norm, or by 0.23 sqrt(n) u of the sum: `tight` rounds
operands by the root of base^2 + (sqrt(n) u / 4)^2 and results of sums by sqrt(n) u / 2.
"""

import contextlib
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .tracing import tensors_in

# For single operations: 16 ulp in fp32, which covers fast exponentials and Winograd convolutions;
# operand rounding for the other precisions.
BASE = {"fp32": 2.0**-20, "tf32": 2.0**-11, "fp16": 2.0**-10, "bf16": 2.0**-7}

_UNIT = 2.0**-24
_CHUNK = 1 << 25  # signs drawn at once
_COPIED = 1 << 28  # operands up to here are copied; larger ones are changed in place

# Operators that select, move or compare values without rounding.
_EXACT = {
    "abs", "alias", "amax", "amin", "argmax", "argmin", "argsort", "as_strided", "bitwise_and",
    "bitwise_not", "bitwise_or", "cat", "clamp", "clamp_max", "clamp_min", "clone",
    "constant_pad_nd", "contiguous", "copy", "cummax", "cummin", "detach", "diagonal", "embedding",
    "empty_like", "eq", "expand", "fill", "flip", "full_like", "gather", "ge", "gt", "hardtanh",
    "index", "index_select", "isfinite", "isinf", "isnan", "le", "lift_fresh", "logical_and",
    "logical_not", "logical_or", "lt", "masked_fill", "masked_select", "max", "max_pool2d",
    "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "maximum", "min", "minimum",
    "ne", "neg", "new_empty", "new_full", "new_ones", "new_zeros", "ones_like", "permute",
    "reflection_pad2d", "relu", "repeat", "replication_pad2d", "reshape", "roll", "select", "set",
    "sign", "slice", "sort", "split", "split_with_sizes", "squeeze", "stack", "t", "threshold",
    "to", "topk", "transpose", "tril", "triu", "unbind", "unfold", "unsqueeze", "view", "where",
    "zero", "zeros_like", "_local_scalar_dense", "_reshape_alias", "_to_copy", "_unsafe_view",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "upsample_nearest2d", "upsample_nearest3d",
    "pixel_shuffle", "channel_shuffle", "detach_copy", "hardtanh_"}
_ALONG = {"_softmax", "_log_softmax", "softmax", "log_softmax", "cumsum", "cumprod",
          "logcumsumexp", "_logcumsumexp"}  # as many results as operands, sums over args[1]


class Rounding(TorchDispatchMode):
    """Use as a context around one call. Copies operands, or changes large ones in place: the caller
    must own them. Equal seeds give equal signs."""

    @classmethod
    def _should_skip_dynamo(cls):
        return False

    def __init__(self, precision, device, seed, tight=False):
        """`tight`: by as much as the norm of honest errors, not the largest of them."""
        super().__init__()
        self._tight = tight
        self._base = BASE[precision]
        self._generator = torch.Generator(device=device)
        self._generator.manual_seed(seed)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(getattr(func, "overloadpacket", func), "__name__", str(func))
        plain = name.rstrip("_")
        if plain in _EXACT:
            return func(*args, **kwargs)
        if hasattr(func, "decompose"):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        length = 1
        with contextlib.suppress(Exception):  # unknown argument form: treat as a single operation
            length = _length(plain, args, kwargs)
        sums = _UNIT * length**0.5
        if plain in _REDUCTIONS or plain in _ALONG or "avg_pool" in plain:
            sums *= 2  # terms are ordered, so partial sums drift further than chance
        # A normalization's sums give one mean to many elements, few of which are the largest.
        ordered = sums / 4 if "_norm" in plain and plain != "linalg_vector_norm" else sums
        size = math.hypot(self._base, ordered / 4) if self._tight else self._base + ordered
        written = id(args[0]) if plain != name and args else None
        done = {}  # x * x stays a square
        args = [self._rounded(a, size, written, done) for a in args]
        kwargs = {k: self._rounded(v, size, written, done) for k, v in kwargs.items()}
        result = func(*args, **kwargs)
        if length > 1:
            for tensor in tensors_in(result):
                if tensor.is_floating_point():
                    self._change(tensor, sums / 2 if self._tight else sums)
        return result

    def _rounded(self, value, size, written, done):
        """Not a recursive closure: that cycle would keep copies until the next collection."""
        if isinstance(value, (list, tuple)):
            return type(value)(self._rounded(v, size, written, done) for v in value)
        if not isinstance(value, torch.Tensor):
            return value
        if not value.is_floating_point() or value.device.type == "meta":
            return value
        if id(value) not in done:
            copy = id(value) != written and value.numel() <= _COPIED
            done[id(value)] = value.clone() if copy else value
            self._change(done[id(value)], size)
        return done[id(value)]

    def _change(self, value, size):
        flat = _flat(value)
        if flat is None:
            return
        for part in flat.split(_CHUNK):
            sign = torch.rand(part.shape, generator=self._generator, device=part.device)
            part.mul_(sign.sub_(0.5).sign_().to(part.dtype).mul_(size).add_(1))


def _flat(value):
    """A flat view of all elements, each once; None for views with gaps or repeats."""
    strides = sorted((s, n) for s, n in zip(value.stride(), value.shape) if n > 1)
    expected = 1
    for stride, size in strides:
        if stride != expected:
            return None
        expected *= size
    return value.as_strided((value.numel(),), (1,))


def _length(name, args, kwargs):
    """Length of an operator's longest sum per result element, from its operands' shapes."""
    operands = [t for t in tensors_in(args) + tensors_in(list(kwargs.values()))
                if t.is_floating_point()]
    if not operands or operands[0].dim() == 0:
        return 1
    x = operands[0]
    if name in ("mm", "bmm", "mv", "dot"):
        return x.shape[-1]
    if name in ("addmm", "baddbmm", "addmv", "addbmm"):
        return operands[1].shape[-1]
    if "convolution" in name and len(operands) > 1:
        weight = operands[1]
        return weight.numel() // max(1, min(weight.shape[:2]))
    if name in _ALONG:
        return x.shape[args[1]] if len(args) > 1 and isinstance(args[1], int) else x.numel()
    if name in _REDUCTIONS:
        dims = kwargs.get("dim", next((a for a in args[1:] if isinstance(a, (list, tuple))), None))
        if dims is None and "norm" not in name and len(args) > 1 and isinstance(args[1], int):
            dims = args[1]
        dims = [dims] if isinstance(dims, int) else dims
        if not dims:
            return x.numel()
        length = 1
        for dim in dims:
            length *= x.shape[dim]
        return length
    if name == "native_layer_norm":
        return _product(args[1])
    if name == "native_group_norm":
        return x.numel() // max(1, x.shape[0] * args[6])
    if "batch_norm" in name:
        return x.numel() // max(1, x.shape[1])
    if "attention" in name and len(operands) > 1:
        return max(x.shape[-1], operands[1].shape[-2])
    if name in ("lstm", "gru") or "rnn" in name:
        return max(t.shape[-1] for t in operands if t.dim() > 0)
    if name.startswith("avg_pool"):
        return _product(args[1])
    if "avg_pool" in name:  # adaptive: args[1] is the output size
        return max(1, x.numel() // _product(x.shape[:-len(args[1])]) // _product(args[1]))
    return 1


_REDUCTIONS = {"sum", "nansum", "mean", "nanmean", "var", "var_mean", "std", "std_mean", "prod",
               "norm", "linalg_vector_norm", "logsumexp", "mse_loss", "smooth_l1_loss",
               "huber_loss", "l1_loss"}


def _product(sizes):
    result = 1
    for size in sizes:
        result *= size
    return result
