# SPDX-License-Identifier: Apache-2.0
"""Fills the judge's input and parameter buffers. Equal arguments give equal bits."""

import torch

from . import tree
from .buffers import DTYPE_NAMES, DTYPES
from .channel import Refusal
from .describe import TORCH
from .module_file import seed_everything

KERNELBENCH_SEED = 42
SCALE = {"fp32": 64.0}  # half types: 4, so that squares stay in range
_SLICE = 16  # elements that are not zero together by chance
_SHARE = 64  # of rows, columns or channels: fewer are left alone
_SAMPLE = 4096
_AT_ONCE = 1 << 24  # elements copied at once
PRECISIONS = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16,
              "bf16": torch.bfloat16}


def kernelbench_trial_seed(trial):
    """The seed of KernelBench's trial number `trial` (from 0), as its eval.py derives it."""
    torch.manual_seed(KERNELBENCH_SEED)
    seeds = [torch.randint(0, 2**32 - 1, (1,)).item() for _ in range(trial + 1)]
    return seeds[trial]


def draw_inputs(loaded, seed, kind, precision, buffers):
    """`buffers`: one tensor for each input. Returns whether the kind differs from "given"."""
    if kind == "kernelbench":
        trial = kernelbench_trial_seed(seed)
        torch.manual_seed(trial)
        if torch.cuda.is_available():
            torch.cuda.manual_seed(trial)
        values = [v.to(PRECISIONS[precision]) if isinstance(v, torch.Tensor) else v
                  for v in loaded.file.inputs()]
        _copy(loaded, values, buffers, same_dtype=False)
        return True
    _draw_given(loaded, seed, buffers)
    if kind == "centred":
        return any([_centre(buffer) for buffer in buffers])
    if kind == "scaled":
        return any([_scale(buffer) for buffer in buffers])
    if kind == "filled":
        return any([_fill_in(buffer) for buffer in buffers])
    return kind != "parameters"


def _draw_given(loaded, seed, buffers):
    """Draws on the device if get_inputs() works there: milliseconds for gigabytes."""
    on_device = buffers and buffers[0].is_cuda and TORCH >= (2, 1)
    if on_device and loaded.draws_on_device is not False:
        try:
            seed_everything(seed)
            with torch.device("cuda"):
                values = loaded.file.inputs()
            _copy(loaded, values, buffers)
            loaded.draws_on_device = True
            return
        except Refusal:
            if loaded.draws_on_device:  # it worked before: do not switch, or the bits differ
                raise
        del_cached()
        loaded.draws_on_device = False
    seed_everything(seed)
    _copy(loaded, loaded.file.inputs(), buffers)


def _copy(loaded, values, buffers, same_dtype=True):
    tensors = []
    for value in values:
        tree.flatten(value, "", tensors)
    del values
    described = loaded.description.inputs
    if len(tensors) != len(buffers):
        raise Refusal("get_inputs() gives a different number of tensors than before", "task",
                      "let get_inputs() return the same kinds and shapes every time")
    for i, (item, buffer) in enumerate(zip(described, buffers)):
        tensor = tensors[i][1]
        other_type = same_dtype and tensor.dtype != DTYPES[item.dtype]
        if list(tensor.shape) != item.shape or other_type:
            raise Refusal(f"get_inputs() gave {item.label} as {list(tensor.shape)} "
                          f"{tensor.dtype}, but {item.shape} {item.dtype} before", "task",
                          "let get_inputs() return the same shapes and types every time")
        buffer.copy_(tensor)
        tensors[i] = None  # free it before copying the next


def _centre(buffer):
    """Shifts tensors that never change sign by their mean. Exact zeros stay: they may be structure
    that the task guarantees, such as a triangle."""
    if not buffer.is_floating_point():
        return False
    low, high = (float(v) for v in torch.aminmax(buffer))
    if low < 0 < high or low == high:
        return False
    zeros = int((buffer == 0).sum())
    count = buffer.numel() - zeros
    if count == 0:
        return False
    mean = float(buffer.sum(dtype=torch.float64)) / count
    edge = high if low >= 0 else low
    if zeros and mean == edge:
        return False  # zeros and one other value: a mask
    keep = buffer == 0 if zeros > buffer.numel() // 100 else None
    buffer.sub_(mean)
    if keep is not None:
        buffer.masked_fill_(keep, 0)
    return True


def _scale(buffer):
    if not buffer.is_floating_point():
        return False
    buffer.mul_(SCALE.get(DTYPE_NAMES[buffer.dtype], 4.0))
    return True


def _first_nonzero(buffer):
    """The first ones; a mask over all of a large tensor would take many times its memory."""
    for piece in buffer.reshape(-1).split(_AT_ONCE):
        there = piece[piece != 0]
        if len(there):
            return there[:_SAMPLE]
    return buffer.reshape(-1)[:0]


def _fill_in(buffer):
    """Gives values to rows, columns and channels that hold only zeros, such as padding, from those
    that do not. Leaves masks, and single ones: the edge of a triangle."""
    if not buffer.is_floating_point():
        return False
    if len(_first_nonzero(buffer).unique()) < 2:
        return False  # zeros and one other value
    nonzero = buffer != 0
    changed = False
    for dim, size in enumerate(buffer.shape):
        each = buffer.numel() // size
        if size < 2 or each < _SLICE:
            continue
        any_there = nonzero
        for other in reversed([d for d in range(buffer.dim()) if d != dim]):
            any_there = any_there.any(other)
        empty, held = (~any_there).nonzero().flatten(), any_there.nonzero().flatten()
        if min(len(empty), len(held)) < max(2, size // _SHARE):
            continue
        for places in empty.split(max(1, _AT_ONCE // each)):
            source = held[torch.arange(len(places), device=held.device) % len(held)]
            buffer.index_copy_(dim, places, buffer.index_select(dim, source))
        changed = True
    return changed


def draw_states(loaded, seed, kind, buffers):
    """`buffers`: one tensor for each state of the contract. Returns whether noise was added."""
    changed = False
    generator = torch.Generator().manual_seed((seed + 1) % (1 << 63))
    for value, buffer in zip(loaded.initial(), buffers):
        if kind == "parameters" and value.is_floating_point() and _is_constant(value):
            flat = value.double().cpu()
            noise = torch.rand(flat.shape, generator=generator, dtype=torch.float64)
            # Ones stay positive (they may be variances), zeros become small numbers.
            flat = torch.where(flat == 0, 0.2 * noise - 0.1, flat * (0.8 + 0.4 * noise))
            buffer.copy_(flat.to(buffer.dtype))
            changed = True
        else:
            buffer.copy_(value)
    return changed


def _is_constant(value):
    flat = value.reshape(-1)
    return bool((flat == flat[0]).all())


def del_cached():
    """Releases torch's cached GPU memory, which the judge needs."""
    if torch.cuda.is_available() and torch.cuda.memory_reserved() > 64 << 20:
        torch.cuda.empty_cache()


