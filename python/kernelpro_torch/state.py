# SPDX-License-Identifier: Apache-2.0
"""A module's state: parameters, buffers, and tensors in plain attributes. A native kernel sees them
only if they are passed to it."""

import torch

from .channel import Refusal

_INTERNAL = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"}


class State:
    """One tensor of the module. `tensor` is the module's own object: assigning to its `.data`
    changes the value everywhere that the module refers to it."""

    def __init__(self, label, tensor, is_parameter):
        self.label = label
        self.tensor = tensor
        self.is_parameter = is_parameter


def collect(model):
    """(states passed to a kernel, states outside the contract). Tied tensors are listed once, under
    their first name."""
    given, outside, seen = [], [], set()

    def add(label, tensor, is_parameter, leave_out=False):
        if id(tensor) in seen:
            return
        seen.add(id(tensor))
        if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
            raise Refusal(f"the parameter {label} is lazy: it gets its shape only in forward",
                          "task", "use a layer that is given its sizes")
        (outside if leave_out or tensor.numel() == 0 else given).append(
            State(label, tensor, is_parameter))

    for label, tensor in model.named_parameters():
        add(label, tensor, True)
    for prefix, module in model.named_modules():
        for name, tensor in module._buffers.items():
            if tensor is not None:
                add(_joined(prefix, name), tensor, False, _is_running_statistic(module, name))
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            if name in _INTERNAL or name.endswith("_hooks") or _is_derived(module, name):
                continue
            for label, tensor in _tensors_in(value, _joined(prefix, name)):
                add(label, tensor, False)
    return given, outside


class Attributes:
    """Snapshot of every submodule's plain attributes and buffers, to undo a forward that keeps
    something for its next call."""

    def __init__(self, model):
        self._kept = [(prefix, module, dict(vars(module)), dict(module._buffers))
                      for prefix, module in model.named_modules()]

    def restore(self):
        """Restores everything; returns the names of what had changed."""
        changed = []
        for prefix, module, attributes, buffers in self._kept:
            for kept, now in ((attributes, vars(module)), (buffers, module._buffers)):
                names = [n for n in now if n not in kept or now[n] is not kept[n]]
                names += [n for n in kept if n not in now]
                changed += [_joined(prefix, n) for n in names]
                if names:
                    now.clear()
                    now.update(kept)
        return changed


def running_statistics(outside):
    return [state.label for state in outside if not state.label.endswith("num_batches_tracked")]


def _joined(prefix, name):
    return f"{prefix}.{name}" if prefix else name


def _is_running_statistic(module, name):
    """Whether a normalization in batch mode only accumulates it for later: not a result."""
    if not isinstance(module, torch.nn.modules.batchnorm._NormBase):
        return False
    return name == "num_batches_tracked" or (
        module.training and name in ("running_mean", "running_var"))


def _is_derived(module, name):
    """Weights that weight_norm, spectral_norm and pruning recompute before each call."""
    return f"{name}_g" in module._parameters or f"{name}_orig" in module._parameters


def _tensors_in(value, label, depth=3):
    if isinstance(value, torch.Tensor):
        yield label, value
    elif depth > 0 and isinstance(value, dict):
        for key, part in value.items():
            yield from _tensors_in(part, f"{label}.{key}", depth - 1)
    elif depth > 0 and isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from _tensors_in(part, f"{label}.{i}", depth - 1)
