# SPDX-License-Identifier: Apache-2.0
"""Nested arguments and results: lists, tuples and dicts with tensors at their leaves."""

import math

import torch

from .channel import Refusal


class Leaf:
    """Placeholder in a template for tensor number `index`."""

    def __init__(self, index):
        self.index = index


def flatten(value, label, tensors, others=None):
    """Appends (label, tensor) for every tensor in `value` and, if `others` is given, (label, value)
    for every other leaf. Returns the template: the same nesting with a Leaf for each tensor."""
    if isinstance(value, torch.Tensor):
        tensors.append((label, value))
        return Leaf(len(tensors) - 1)
    if isinstance(value, dict):
        parts = {k: flatten(v, f"{label}[{k!r}]", tensors, others) for k, v in value.items()}
        try:
            return type(value)(parts)
        except TypeError:
            return parts
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        names = getattr(value, "_fields", None) or range(len(value))
        parts = [
            flatten(v, f"{label}.{n}" if isinstance(n, str) else f"{label}[{n}]", tensors, others)
            for n, v in zip(names, value)
        ]
        return _like(value, parts)
    if others is not None:
        others.append((label, value))
    return value


def fill(template, tensors):
    """The nested value again, with `tensors` in place of its leaves."""
    if isinstance(template, Leaf):
        return tensors[template.index]
    if isinstance(template, dict):
        parts = {k: fill(v, tensors) for k, v in template.items()}
        return type(template)(parts)
    if isinstance(template, (list, tuple)) and not isinstance(template, torch.Size):
        return _like(template, [fill(v, tensors) for v in template])
    return template


def _like(value, parts):
    if hasattr(value, "_fields"):
        return type(value)(*parts)
    if isinstance(value, list):
        return parts
    try:
        return type(value)(parts)
    except TypeError:
        return tuple(parts)


def c_literal(value):
    """A number, bool or plain string as a C++ literal; None if it has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -(1 << 63) < value < 1 << 63:
            return None
        return str(value) if abs(value) < 1 << 31 else f"{value}ll"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    if isinstance(value, str) and value.isascii() and value.isprintable() and len(value) < 256:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return None


def check_tensor(what, tensor, names):
    """Refuses tensors that a task cannot have; otherwise returns the dtype's name."""
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise Refusal(f"{what} is a {tensor.layout} tensor, but tasks hold only dense tensors",
                      "task", "convert it to a dense tensor in the file")
    if tensor.dtype not in names:
        plain = str(tensor.dtype).replace("torch.", "")
        raise Refusal(f"{what} has the type {plain}, which tasks do not support", "task",
                      "use float32, float16, bfloat16, int32, int64 or bool in the file")
    if tensor.numel() == 0:
        raise Refusal(f"{what} is empty (shape {list(tensor.shape)})", "task",
                      "give every tensor at least one element")
    return names[tensor.dtype]
