# SPDX-License-Identifier: Apache-2.0
# A template: `kernelpro export` fills in the names between @ signs.
import weakref as _kp_weakref

import torch as _kp_torch
@BUILD@

# (name, dtype, shape) of what the kernel reads and writes, in its order.
_KP_INPUTS = @INPUTS@
_KP_STATE = @STATE@
_KP_OUTPUTS = @OUTPUTS@
_KP_WORKSPACE_BYTES = @WORKSPACE@
KP_PRECISION = "@PRECISION@"  # the contract that the kernel was judged by


def _kp_flatten(value, found):
    if isinstance(value, _kp_torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _kp_flatten(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _kp_flatten(item, found)


def _kp_given(args, kwargs):
    """The tensors among forward's arguments, in the order of its parameters."""
    if kwargs:
        import inspect

        bound = inspect.signature(Model.forward).bind(None, *args, **kwargs)
        args = tuple(bound.arguments.values())[1:]
    given = []
    _kp_flatten(args, given)
    return given


def _kp_wrong(tensor, name, shape):
    if tensor.shape != shape:
        return (
            f"this kernel was made for {name} of shape {tuple(shape)}, not {tuple(tensor.shape)}: "
            "export one for that size"
        )
    if tensor.device.type != _KP_DEVICE:
        return f"{name} is on {tensor.device}; this kernel runs on {_KP_PLACE}"
    return ""


def _kp_fit(tensor, name, dtype, shape):
    wrong = _kp_wrong(tensor, name, shape)
    if wrong:
        raise ValueError(wrong)
    if tensor.dtype != dtype:
        tensor = tensor.to(dtype)
    if not tensor.is_contiguous():
        tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % _KP_ALIGNMENT == 0 else tensor.clone()


def kp_misfit(module, *args, **kwargs):
    """Why the kernel cannot do this call of `module` as it stands, without casts; "": it can."""
    try:
        given, state = _kp_given(args, kwargs), _kp_state(module)
    except (TypeError, ValueError) as error:
        return str(error)
    if len(given) != len(_KP_INPUTS):
        return f"this kernel takes {len(_KP_INPUTS)} tensors, {len(given)} were given"
    for tensor, (name, dtype, shape) in zip(given + state, _KP_INPUTS + _KP_STATE):
        wrong = _kp_wrong(tensor, name, shape)
        if wrong:
            return wrong
        if tensor.dtype != dtype:
            return f"{name} is {tensor.dtype}; this kernel was made for {dtype}"
        if tensor.device != (given + state)[0].device:
            return f"{name} is on {tensor.device}, other tensors are not"
    return ""


def kp_forward(module, *args, **kwargs):
    """`Model.forward` by the kernel. `module`: any that has Model's parameters and buffers."""
    given = _kp_given(args, kwargs)
    if len(given) != len(_KP_INPUTS):
        raise ValueError(f"this kernel takes {len(_KP_INPUTS)} tensors, {len(given)} were given")
    tensors = [_kp_fit(t, *about) for t, about in zip(given, _KP_INPUTS)]
    device = tensors[0].device if tensors else _kp_torch.device(_KP_DEVICE)
    tensors += [_kp_fit(t.to(device), *about) for t, about in zip(_kp_state(module), _KP_STATE)]
    outputs = [
        _kp_torch.empty(shape, dtype=dtype, device=device) for _, dtype, shape in _KP_OUTPUTS
    ]
    workspace = _kp_torch.empty(_KP_WORKSPACE_BYTES, dtype=_kp_torch.uint8, device=device)
    _kp_launch(tensors + outputs, workspace, device)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


_kp_places = _kp_weakref.WeakKeyDictionary()


def _kp_state(module):
    places = _kp_places.get(module)
    if places is None:
        places = _kp_places[module] = _kp_find_state(module)
    return [holder[key] for holder, key in places]


# Where the tensors live that the kernel reads, by their names in the module.
def _kp_find_state(module):
    found = {}

    def add(label, holder, key, depth=3):
        value = holder[key]
        if isinstance(value, _kp_torch.Tensor):
            name = "".join(c if c.isalnum() else "_" for c in label)
            found.setdefault(name, (holder, key))
        elif depth > 0 and isinstance(value, (dict, list, tuple)):
            for part in value if isinstance(value, dict) else range(len(value)):
                add(f"{label}.{part}", value, part, depth - 1)

    for prefix, owner in module.named_modules():
        for holder in (owner._parameters, owner._buffers, vars(owner)):
            for key in list(holder):
                if holder is not vars(owner) or key[:1] != "_":
                    add(f"{prefix}.{key}" if prefix else key, holder, key)
    missing = [name for name, _, _ in _KP_STATE if name not in found]
    if missing:
        raise ValueError("the module has no " + ", ".join(missing))
    return [found[name] for name, _, _ in _KP_STATE]


class ModelNew(Model):
    """`Model` with its forward done by the kernel: the same constructor, parameters and buffers, so
    that under one seed both have the same weights."""

    def forward(self, *args, **kwargs):
        return kp_forward(self, *args, **kwargs)
