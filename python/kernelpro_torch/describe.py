# SPDX-License-Identifier: Apache-2.0
"""Describes a task file's module: names, types and shapes of its inputs, states and outputs.

Inputs can far exceed this machine's memory. The file then runs on the meta device, which has shapes
but no data, unless its code reads values.
"""

import contextlib
import inspect
import sys
import types

import torch

from . import quick_import
from . import state as states
from . import tree
from .buffers import DTYPE_NAMES
from .channel import Refusal
from .module_file import seed_everything, set_arithmetic_flags, telling
from .tracing import RecurrentShapes, Trace

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])


_DTYPES = {dtype: name for dtype, name in DTYPE_NAMES.items() if name != "fp64"}


class Item:
    """One tensor of the task. `place` is its index among the inputs, states or outputs."""

    def __init__(self, label, name, role, dtype, shape, buffer=False):
        self.label, self.name, self.role, self.buffer = label, name, role, buffer
        self.dtype, self.shape = dtype, list(shape)

    def answer(self):
        return {"label": self.label, "name": self.name, "role": self.role, "buffer": self.buffer,
                "dtype": self.dtype, "shape": self.shape}


class Description:
    """One file under one choice of dimensions. `inputs`, `states` and `outputs` are Items, in the
    task's order; `arguments` nests forward's arguments, with tree.Leaf for tensors."""

    def __init__(self):
        self.inputs, self.states, self.outputs = [], [], []
        self.arguments = []
        self.constants = {}
        self.training = False
        self.needs_grad = False
        self.flops = 0
        self.intermediate_bytes = 0
        self.notes = []
        self.changed_inputs = set()  # indices of inputs that forward modifies in place
        self.changed_states = set()

    @property
    def items(self):
        return self.inputs + self.states + self.outputs

    def answer(self):
        return {
            "items": [item.answer() for item in self.items],
            "constants": self.constants,
            "training": self.training,
            "intermediate_bytes": self.intermediate_bytes,
            "flops": self.flops,
            "matmul_flops": self.flops,
            "note": "; ".join(self.notes),
        }


def describe(file, device, real_model):
    """Describes a ModuleFile. Runs it with data where that is quick (on the GPU within part of the
    free memory, on the CPU with small inputs), which takes less time than importing PyTorch's shape
    functions; elsewhere without data if possible. `real_model`: returns the module on the device,
    with its states as constructed."""
    if device == "cuda":
        try:
            with most_memory(0.6):
                return _describe(file, lambda f: real_model(), lambda: torch.device("cuda"), True)
        except Refusal as refusal:
            refusal.__traceback__ = None  # and with it the run's memory
        torch.cuda.empty_cache()
    if TORCH >= (2, 1) and (device == "cuda" or not _are_inputs_small(file)):
        quick_import.complete()
        for construct in (_on_meta, _then_to_meta):
            try:
                with without_dynamo(), RecurrentShapes():
                    return _describe(file, construct, _meta, large=False)
            except Exception:  # the file reads values, or an operator has no shapes-only form;
                pass           # if the file is at fault, the real run reports it better
    here = torch.device("cuda") if device == "cuda" else contextlib.nullcontext()
    return _describe(file, lambda f: real_model(), lambda: here, large=True)


def _are_inputs_small(file):
    try:
        with _meta():
            tensors = []
            tree.flatten(file.inputs(), "", tensors)
    except Exception:
        return False
    return sum(t.numel() * t.element_size() for _, t in tensors) < 16 << 20


@contextlib.contextmanager
def most_memory(share):
    """Limits torch to this share of the GPU's free memory."""
    free, total = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction(min(1.0, share * free / total))
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@contextlib.contextmanager
def without_dynamo():
    """Some of PyTorch's shape functions are marked as not to be compiled, and the first call of one
    imports the compiler, which costs seconds. Anything that needs more than the mark fails here,
    and then runs with data."""
    if "torch._dynamo" in sys.modules:
        yield
        return
    marked = []

    def disable(fn=None, recursive=True, **_):
        marked.append(fn)
        return fn

    stand_in = types.ModuleType("torch._dynamo")
    stand_in.disable = disable
    sys.modules["torch._dynamo"] = torch._dynamo = stand_in
    try:
        yield
    finally:
        del sys.modules["torch._dynamo"], torch._dynamo
        for fn in marked:
            vars(fn).pop("__dynamo_disable", None)


@contextlib.contextmanager
def _meta():
    with torch.device("meta"):
        yield


def _on_meta(file):
    with torch.device("meta"):
        return file.construct()


def _then_to_meta(file):
    """For constructors that read values."""
    model = file.construct().to("meta")
    for s in sum(states.collect(model), []):
        if s.tensor.device.type != "meta":
            s.tensor.data = s.tensor.data.to("meta")
    return model


def _describe(file, construct, context, large):
    result = Description()
    with torch.no_grad():
        model = construct(file)
    with context(), torch.no_grad():
        given = _given_inputs(file, model, result, large)
        states_given, outside = states.collect(model)
        _describe_states(states_given, result)
        versions = [t._version for t in given], [s.tensor._version for s in states_given]
        attributes = states.Attributes(model)
        output, trace = _call(model, result, given)
        kept = attributes.restore()
        if kept:
            result.notes.append(f"forward keeps {', '.join(kept[:4])} for its next call; here every "
                                "call begins as the module was constructed")
        _describe_outputs(output, given, result)
        _note_changes(result, given, states_given, versions)
    result.training = model.training
    result.flops = trace.flops
    result.intermediate_bytes = trace.peak_bytes
    if trace.random:
        where = ", ".join(f"{name}: {op}" for name, op in list(trace.random.items())[:4])
        result.notes.append(f"forward draws random numbers ({where})")
    statistics = states.running_statistics(outside)
    if statistics:
        listed = ", ".join(statistics[:4]) + (" ..." if len(statistics) > 4 else "")
        result.notes.insert(0, "training mode: normalisation uses the batch's own statistics; the "
                               f"running ones ({listed}) are outside the contract")
    elif any(m.training for m in model.modules()) and _has_modes(model):
        result.notes.insert(0, "training mode")
    return result


def _has_modes(model):
    names = ("Dropout", "BatchNorm", "InstanceNorm", "RReLU")
    return any(part in type(m).__name__ for m in model.modules() for part in names)


def _given_inputs(file, model, result, large):
    seed_everything(0)
    values = file.inputs()
    tensors, others = [], []
    labelled = _label_arguments(model, values)
    result.arguments = [tree.flatten(v, label, tensors, others) for label, v in labelled]
    for label, tensor in tensors:
        dtype = tree.check_tensor(f"the input {label}", tensor, _DTYPES)
        result.inputs.append(Item(label, label, "input", dtype, tensor.shape))
        if not tensor.is_contiguous():
            result.notes.append(f"get_inputs() gives {label} with strides {list(tensor.stride())}; "
                                "here it lies contiguously")
    if any(isinstance(value, (int, float)) and not isinstance(value, bool) for _, value in others):
        _check_constant(file, others, tensors if large else [])
    for label, value in others:
        literal = tree.c_literal(value)
        if literal is not None:
            result.constants[label] = literal
    return [tensor for _, tensor in tensors]


def _check_constant(file, others, held):
    """Numbers among the arguments become constants of the task, so they must not be random."""
    if sum(t.numel() * t.element_size() for _, t in held) > 1 << 28:
        return  # drawing twice would take long
    seed_everything(1)
    again = []
    for i, value in enumerate(file.inputs()):
        tree.flatten(value, str(i), [], again)
    for (label, first), (_, second) in zip(others, again):
        if isinstance(first, (int, float)) and first != second:
            raise Refusal(f"get_inputs() draws the number {label} at random ({first}, then "
                          f"{second}); a kernel is built for fixed numbers", "task",
                          "fix it in the file, or make it a tensor of one element")


def _label_arguments(model, values):
    """[(name of forward's parameter, value)]."""
    try:
        bound = inspect.signature(model.forward).bind(*values)
    except TypeError as error:
        raise Refusal(f"get_inputs() gives {len(values)} arguments, but forward does not take "
                      f"them: {error}", "task", "let get_inputs() return forward's arguments"
                      ) from None
    labelled = []
    kinds = bound.signature.parameters
    for name, value in bound.arguments.items():
        if kinds[name].kind is inspect.Parameter.VAR_POSITIONAL:
            labelled += [(f"{name}[{i}]", part) for i, part in enumerate(value)]
        else:
            labelled.append((name, value))
    return labelled


def _describe_states(found, result):
    for s in found:
        dtype = tree.check_tensor(f"the {'parameter' if s.is_parameter else 'buffer'} {s.label}",
                                  s.tensor, _DTYPES)
        result.states.append(Item(s.label, s.label, "parameter", dtype, s.tensor.shape,
                                  buffer=not s.is_parameter))


def _call(model, result, given):
    """forward's result under a trace, with gradients only if it needs them."""
    arguments = tree.fill(result.arguments, given)
    set_arithmetic_flags(strict=True)
    with telling("forward failed"):
        try:
            trace = Trace(model)
            with trace:
                return model(*arguments), trace
        except RuntimeError as error:
            if "grad" not in str(error):
                raise
        result.needs_grad = True
        trace = Trace(model)
        with torch.enable_grad(), trace:
            output = model(*arguments)
        result.notes.append("forward computes gradients")
        return output, trace


def _describe_outputs(output, given, result):
    tensors, others = [], []
    tree.flatten(output, "out", tensors, others)
    for label, value in others:
        if value is not None:
            raise Refusal(f"forward returns {label} of type {type(value).__name__}", "task",
                          "return tensors only")
    if not tensors:
        raise Refusal("forward returns no tensor", "task", "return the result")
    for label, tensor in tensors:
        dtype = tree.check_tensor(f"the output {label}", tensor, _DTYPES)
        result.outputs.append(Item(label, label, "output", dtype, tensor.shape))
        for item, source in zip(result.inputs, given):
            if tensor is source:
                result.notes.append(f"the output {label} is the input {item.label} itself; here it "
                                    "has memory of its own")


def _note_changes(result, given, states_given, versions):
    for i, (tensor, before) in enumerate(zip(given, versions[0])):
        if tensor._version != before:
            result.changed_inputs.add(i)
            result.notes.append(f"forward changes its input {result.inputs[i].label} in place; "
                                "here inputs stay as they are")
    for i, (s, before) in enumerate(zip(states_given, versions[1])):
        if s.tensor._version != before:
            result.changed_states.add(i)
            result.notes.append(f"forward changes {s.label} in place; that change is outside the "
                                "contract, and every call begins with its value as given")
