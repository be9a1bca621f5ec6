# SPDX-License-Identifier: Apache-2.0
"""Traces one call of a module, operator by operator: floating-point operations, peak memory, and
random draws."""

import contextlib
import math
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode

try:
    from torch.overrides import TorchFunctionMode as _FunctionMode
except ImportError:
    _FunctionMode = object

_RANDOM = {"bernoulli", "bernoulli_", "rand", "rand_like", "randn", "randn_like", "randint",
           "randint_like", "randperm", "normal", "normal_", "uniform", "uniform_", "exponential_",
           "cauchy_", "log_normal_", "geometric_", "random_", "native_dropout", "dropout",
           "dropout_", "alpha_dropout", "feature_dropout", "multinomial", "poisson",
           "rrelu_with_noise", "rrelu_with_noise_", "_fused_dropout", "binomial",
           "_sample_dirichlet", "_cudnn_rnn"}


class Trace(TorchDispatchMode):
    """Use as a context around one call. Counts `flops` (of matrix products and convolutions),
    `peak_bytes` of simultaneously live tensors created by the call, and records random operators in
    `random`, by the module that ran them."""

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # nothing is compiled; skipping would import all of torch._dynamo

    def __init__(self, model=None):
        super().__init__()
        self.flops = 0
        self.peak_bytes = 0
        self.random = {}
        self._live_bytes = 0
        self._storages = {}
        self._stack = []
        self._model = model
        self._hooks = []

    def __enter__(self):
        for name, module in self._model.named_modules() if self._model is not None else []:
            kind = f"{name or 'forward'} ({type(module).__name__})"
            self._hooks.append(module.register_forward_pre_hook(self._entering(kind)))
            self._hooks.append(module.register_forward_hook(self._leaving))
        return super().__enter__()

    def __exit__(self, *error):
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        return super().__exit__(*error)

    def _entering(self, kind):
        return lambda module, arguments: self._stack.append(kind)

    def _leaving(self, module, arguments, result):
        if self._stack:
            self._stack.pop()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(getattr(func, "overloadpacket", func), "__name__", str(func))
        if name not in _FLOPS and hasattr(func, "decompose"):
            TorchDispatchMode.__enter__(self)  # only the mode: the hooks are in place
            try:
                result = func.decompose(*args, **kwargs)
            finally:
                TorchDispatchMode.__exit__(self, None, None, None)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        self._count(name, args, kwargs, result)
        return result

    def _count(self, name, args, kwargs, result):
        if name in _RANDOM and not _is_off(name, args, kwargs):
            where = self._stack[-1] if self._stack else "forward"
            self.random.setdefault(where, name.rstrip("_"))
        if name in _FLOPS:
            with contextlib.suppress(Exception):  # keyword arguments, other forms: not counted
                self.flops += int(_FLOPS[name](args, tensors_in(result)[0]))
        given = {_storage(tensor) for tensor in tensors_in(args) + tensors_in(list(kwargs.values()))}
        for tensor in tensors_in(result):
            self._hold(tensor, given)

    def _hold(self, tensor, given):
        """Counts a storage from the first tensor over it until the last one dies. Unknown storages
        among the operator's arguments belong to the caller."""
        key = _storage(tensor)
        if key is None or (key in given and key not in self._storages):
            return
        if key not in self._storages:
            size = tensor.numel() * tensor.element_size()
            self._storages[key] = [0, size]
            self._live_bytes += size
            self.peak_bytes = max(self.peak_bytes, self._live_bytes)
        self._storages[key][0] += 1
        weakref.finalize(tensor, self._drop, key)

    def _drop(self, key):
        held = self._storages.get(key)
        if held is None:
            return
        held[0] -= 1
        if held[0] == 0:
            self._live_bytes -= held[1]
            del self._storages[key]


class RecurrentShapes(_FunctionMode):
    """For the meta device: computes the shapes of LSTM, GRU and RNN results directly, instead of
    tracing thousands of operators step by step, which takes a minute."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        plain = (name in ("lstm", "gru", "rnn_tanh", "rnn_relu") and len(args) == 9
                 and args[0].device.type == "meta")
        if not plain:
            return func(*args, **(kwargs or {}))
        x, state, weights, _, _, _, _, both_ways, batch_first = args
        first = state[0] if isinstance(state, (list, tuple)) else state
        out = x.new_empty((*x.shape[:-1], first.shape[-1] * (2 if both_ways else 1)))
        rows = x.shape[:-1].numel()
        for weight in weights:
            if weight.dim() == 2:  # count the matrix products
                torch.mm(x.new_empty((rows, weight.shape[1])), weight.t())
        return (out, *(torch.empty_like(s) for s in state)) if name == "lstm" else (
            out, torch.empty_like(first))


def _is_off(name, args, kwargs):
    """Whether it is dropout that drops nothing."""
    if name == "_cudnn_rnn":
        return len(args) < 13 or args[11] == 0 or not args[12]
    if "dropout" not in name:
        return False
    p = args[1] if len(args) > 1 else kwargs.get("p", 1)
    train = args[2] if len(args) > 2 else kwargs.get("train", True)
    return p == 0 or train is False


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors_in(part)]
    return []


def _storage(tensor):
    try:
        if hasattr(tensor, "untyped_storage"):
            return tensor.untyped_storage()._cdata
        return tensor.storage().data_ptr()  # torch 1.13, which never traces without data
    except (RuntimeError, NotImplementedError, AttributeError):
        return None


def _mm(args, out):
    return 2 * out.numel() * args[0].shape[-1]


def _addmm(args, out):
    return 2 * out.numel() * args[1].shape[-1]


def _convolution(args, out):
    x, weight, transposed = args[0], args[1], args[6]
    spatial = (x if transposed else out).shape[2:]
    return 2 * math.prod(spatial) * out.shape[0] * weight.numel()


def _attention(args, out):
    """As PyTorch counts it: both full products, whatever the mask."""
    q, k, v = args[:3]
    heads = math.prod(q.shape[:-2])
    return 2 * heads * q.shape[-2] * k.shape[-2] * (q.shape[-1] + v.shape[-1])


def _rnn(args, out):
    rows = args[0].shape[:-1].numel()
    return sum(2 * rows * weight.numel() for weight in args[1] if weight.dim() == 2)


# Operators that are matrix products or convolutions: (positional arguments, first result) -> count.
# (torch.utils.flop_counter has the same, but takes most of a second to import.)
_FLOPS = {
    "mm": _mm, "bmm": _mm, "_int_mm": _mm, "_scaled_mm": _mm, "addmm": _addmm, "baddbmm": _addmm,
    "mv": lambda args, out: 2 * args[0].numel(), "dot": lambda args, out: 2 * args[0].numel(),
    "convolution": _convolution, "_convolution": _convolution,
    "_cudnn_rnn": _rnn,
    "_scaled_dot_product_flash_attention": _attention,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_efficient_attention": _attention,
    "_scaled_dot_product_cudnn_attention": _attention,
    "_scaled_dot_product_fused_attention_overrideable": _attention,
}
