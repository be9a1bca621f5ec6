# SPDX-License-Identifier: Apache-2.0
"""Computes expected results from inputs in the judge's buffers, into the judge's buffers."""

import contextlib
import math
import time

import torch

from . import tree
from .channel import Refusal
from .draw import PRECISIONS
from .module_file import set_arithmetic_flags, seed_everything, telling
from .rounding import Rounding
from .tracing import Trace

# Tolerances, relative to the larger of the element and the output's root mean square, above which
# summation order cannot explain a difference.
_AGREE = {"float64": 1e-9, "fp32": 1e-4, "fp16": 1e-2, "bf16": 3e-2}
_IN_FLOAT64 = ("float64", "rounded", "tight")


class Ways:
    """Whether to compute with cuDNN or without. Its convolutions in float64 may be many times slower than
    PyTorch's own, which multiply matrices on FP64 tensor cores, or not: both are tried, and the faster
    stays."""
    SLOW_MS = 100  # below, either will do

    def __init__(self):
        self._ms = {}  # kind -> {with cuDNN: [milliseconds of each call]}

    def choose(self, kind):
        tried = self._ms.get(kind, {})
        with_it, without = tried.get(True, []), tried.get(False, [])
        if not with_it or min(with_it) < self.SLOW_MS:
            return True
        if not without:
            return False
        if len(with_it) < 2 and min(without) < min(with_it):
            return True  # its first call also loads libraries
        return min(with_it) <= min(without)

    def note(self, kind, with_it, milliseconds):
        self._ms.setdefault(kind, {}).setdefault(with_it, []).append(milliseconds)


def compute(loaded, attached, numerics, twice):
    """`attached`: inputs, states (tensors in order) and expected (tensor for each output that has a
    buffer, else None). Returns the answer's members."""
    started = time.thread_time()
    description = loaded.description
    model = loaded.model()
    dtype_of = _dtype_rule(numerics, attached.precision)
    with telling(f"the module cannot be computed in {_said(numerics, attached.precision)}"):
        def fresh():
            _bind(loaded, attached, dtype_of)
            return _arguments(description, attached, numerics, dtype_of)

        try:
            seed = attached.seed if numerics == "kernelbench" else 0
            results, milliseconds = _fastest_call(loaded, model, fresh, numerics, attached, seed)
            _store(description, attached, results)
            del results
            random = ""
            if twice:
                random = _differs(loaded, model, fresh(), numerics, attached)
        finally:
            loaded.release()
    return {"milliseconds": milliseconds, "processor_s": time.thread_time() - started,
            "random": random}


def _said(numerics, precision):
    return {"float64": "float64", "rounded": "float64", "tight": "float64",
            "strict": "its declared types (strict)",
            "kernelbench": f"{precision} as KernelBench does"}[numerics]


def _dtype_rule(numerics, precision):
    """Maps a declared dtype to the one used in the computation; `every`: integers too."""
    if numerics in _IN_FLOAT64:
        return lambda t, every=False: torch.float64 if t.is_floating_point() else t.dtype
    if numerics == "kernelbench":
        run = PRECISIONS[precision]
        return lambda t, every=False: run if every or t.is_floating_point() else t.dtype
    return lambda t, every=False: t.dtype


def _arguments(description, attached, numerics, dtype_of):
    tensors = []
    for i, tensor in enumerate(attached.inputs):
        used = tensor.to(dtype_of(tensor, every=numerics == "kernelbench"))
        if used is tensor and i in description.changed_inputs:
            used = tensor.clone()  # forward must not change the buffer
        tensors.append(used)
    return tree.fill(description.arguments, tensors)


def _bind(loaded, attached, dtype_of):
    """Points the module's tensors at the buffers; copies only if necessary."""
    given, outside = loaded.states()
    for i, (state, buffer) in enumerate(zip(given, attached.states)):
        used = buffer.to(dtype_of(buffer))
        if used is buffer and i in loaded.description.changed_states:
            used = buffer.clone()
        state.tensor.data = used
    for state, value in zip(outside, loaded.outside_values()):
        kind = dtype_of(value)
        if kind == torch.float32 and attached.half is not None:
            kind = attached.half
        state.tensor.data = value.to(device=attached.device, dtype=kind, copy=True)


def _set_flags(loaded, numerics):
    if numerics == "kernelbench":
        set_arithmetic_flags(loaded.flags)
    else:
        set_arithmetic_flags(strict=True)


def _call(loaded, model, arguments, numerics, attached, seed):
    """The output tensors. Tensors created without a dtype get the run's."""
    _set_flags(loaded, numerics)
    before = torch.get_default_dtype()
    torch.set_default_dtype(_default_dtype(loaded, numerics, attached))
    try:
        if numerics == "kernelbench":
            torch.manual_seed(seed)
        else:
            seed_everything(seed)
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(loaded.description.needs_grad))
            if numerics in ("rounded", "tight"):
                attached.roundings += 1  # new signs for each computation
                stack.enter_context(Rounding(attached.precision, attached.device,
                                             attached.roundings, numerics == "tight"))
            output = model(*arguments)
    finally:
        torch.set_default_dtype(before)
    tensors = []
    tree.flatten(output, "out", tensors)
    return [tensor.detach() for _, tensor in tensors]


def _default_dtype(loaded, numerics, attached):
    if numerics in _IN_FLOAT64:
        return torch.float64
    if numerics == "kernelbench":
        return loaded.default_dtype
    return attached.half or loaded.default_dtype


def _fastest_call(loaded, model, fresh, numerics, attached, seed):
    """`fresh()`: the arguments, with the module's states in place."""
    if attached.device != "cuda" or numerics not in _IN_FLOAT64:
        return _timed_call(loaded, model, fresh(), numerics, attached, seed)
    with_it = loaded.ways.choose(numerics)
    before, torch.backends.cudnn.enabled = torch.backends.cudnn.enabled, with_it
    try:
        results, milliseconds = _timed_call(loaded, model, fresh(), numerics, attached, seed)
    except RuntimeError:  # no such operator without it, or no memory
        if with_it:
            raise
        loaded.ways.note(numerics, False, math.inf)
        results = None
    finally:
        torch.backends.cudnn.enabled = before
    if results is None:
        return _fastest_call(loaded, model, fresh, numerics, attached, seed)
    loaded.ways.note(numerics, with_it, milliseconds)
    return results, milliseconds


def _timed_call(loaded, model, arguments, numerics, attached, seed):
    if attached.device == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        results = _call(loaded, model, arguments, numerics, attached, seed)
        end.record()
        end.synchronize()
        return results, begin.elapsed_time(end)
    start = time.perf_counter()
    results = _call(loaded, model, arguments, numerics, attached, seed)
    return results, (time.perf_counter() - start) * 1e3


def _store(description, attached, results):
    if len(results) != len(description.outputs):
        raise Refusal(f"forward returned {len(results)} tensors, but {len(description.outputs)} "
                      "when it was described", "task", "let forward return the same every time")
    for item, result, expected in zip(description.outputs, results, attached.expected):
        if list(result.shape) != item.shape:
            raise Refusal(f"forward returned {item.label} with shape {list(result.shape)}, but "
                          f"{item.shape} when it was described", "task",
                          "let the shapes depend only on the shapes of the inputs")
        if expected is not None:
            expected.copy_(result)


def _differs(loaded, model, arguments, numerics, attached):
    """Recomputes under another random state; "" if both agree within rounding."""
    trace = Trace(model)
    with trace:
        results = _call(loaded, model, arguments, numerics, attached, 0x5EED)
    for item, result, expected in zip(loaded.description.outputs, results, attached.expected):
        if expected is None:
            continue
        if _agree(result, expected, "float64" if numerics == "float64" else item.dtype):
            continue
        if not trace.random:
            return (f"{item.label} differs between two computations on the same inputs, and no "
                    "random operator was seen: the module keeps state or its sums are unordered")
        where = ", ".join(f"{name}: {op}" for name, op in list(trace.random.items())[:4])
        return (f"{item.label} differs between two computations on the same inputs because the "
                f"module draws random numbers ({where})")
    return ""


def _agree(result, expected, kind):
    """Compares in chunks: differences of whole outputs would need gigabytes."""
    first, second = result.reshape(-1), expected.reshape(-1)
    step = 1 << 26
    pieces = [slice(at, at + step) for at in range(0, first.numel(), step)]
    other = [p for p in pieces if not torch.equal(first[p].to(second.dtype), second[p])]
    if not other or not expected.is_floating_point():
        return not other
    squares = sum(float(second[p].double().square().nan_to_num(0, 0, 0).sum()) for p in pieces)
    scale = (squares / second.numel()) ** 0.5
    for p in other:
        a, b = first[p].double(), second[p].double()
        finite = torch.isfinite(a) & torch.isfinite(b)
        close = (a - b).abs() <= _AGREE.get(kind, 1e-4) * b.abs().clamp(min=scale)
        if not bool(torch.where(finite, close, (a == b) | (torch.isnan(a) & torch.isnan(b))).all()):
            return False
    return True
