# SPDX-License-Identifier: Apache-2.0
"""A candidate's file: its class `ModelNew`, constructed like the reference's `Model` and called on
the judge's buffers."""

import hashlib
import importlib.util
import inspect
import os
import re
import sys
import tempfile
import traceback

import torch

from . import plain, state, tree
from .channel import Refusal
from .module_file import PARAMETER_SEED, seed_everything, set_arithmetic_flags

_HALF = {"fp16": torch.float16, "bf16": torch.bfloat16}
_grad = torch.autograd.set_grad_enabled
_loaded = 0


class Subject:
    """`task`: the case's candidate.TaskSide. Loading runs the candidate's code; all its exceptions
    become a Refusal, with the rule "compile" during import."""

    def __init__(self, path, task, device, precision, policy, seed=PARAMETER_SEED):
        self.path, self.task, self.device = path, task, device
        self.precision, self.kernelbench = precision, policy == "kernelbench"
        self._half = _HALF.get(precision) if self.kernelbench or task.recast else None
        self._seed = seed
        self.notes = []
        self._needs_grad = False  # until forward fails without gradients
        self._written = []  # places of the parameters that each call writes
        self._build_folder()
        set_flags(self.precision, self.kernelbench)
        self._module = self._import()
        self.model = self._construct()
        self._states = self._find_states()

    def settle_in(self, values):
        """Moves the task's parameters and buffers into these tensors, so that new values in them
        are the module's at once. What cannot move unnoticed, since it has another type or other
        tensors share its memory, is written in each call, in place (a candidate's own CUDA graph
        knows its address)."""
        self._written = []
        for place, (s, value) in enumerate(zip(self._states, values)):
            if s is None:
                continue
            if plain.may_move(s.tensor, value):
                s.tensor.data = value
            else:
                self._written.append(place)

    def write(self, values):
        """The values of this call into the parameters that did not move. In the call's time."""
        for place in self._written:
            self.device.copy(self._states[place].tensor.data, values[place])

    def states(self):
        """For each parameter of the task, the candidate's own (state.State), or None."""
        return self._states

    def arguments(self, inputs):
        """The inputs, cast to the types that forward gets."""
        return [self._like_kernelbench(value, True) for value in inputs]

    def output_type(self, declared):
        return self._half if self._half and declared.is_floating_point else declared

    def call(self, inputs):
        """The result of forward, with the inputs in place of its tensor arguments."""
        arguments = tree.fill(self.task.arguments, inputs)
        _grad(self._needs_grad)
        try:
            return self.model(*arguments)
        except RuntimeError as error:
            if self._needs_grad or "grad" not in str(error):
                raise
            self._needs_grad = True
            _grad(True)
            return self.model(*arguments)
        finally:
            _grad(False)

    def _import(self):
        global _loaded
        _loaded += 1
        name = f"kernelpro_candidate_{_loaded}"
        spec = importlib.util.spec_from_file_location(name, self.path)
        module = importlib.util.module_from_spec(spec)
        if self.kernelbench and self.task.file is not None:
            # KernelBench runs both files in one namespace, and some candidates rely on that.
            known = vars(self.task.file.module).items()
            module.__dict__.update({k: v for k, v in known if not k.startswith("__")})
            module.__dict__.pop("ModelNew", None)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:  # SystemExit too
            raise Refusal(first_causes(error, self.path), "compile") from None
        if not inspect.isclass(getattr(module, "ModelNew", None)):
            raise Refusal("the file defines no class ModelNew", "compile",
                          "define `class ModelNew(nn.Module)` with Model's constructor arguments")
        return module

    def _construct(self):
        cast = self._cast
        positional, named = self.task.init_inputs(cast if self.kernelbench else lambda v: v)
        seed_everything(self._seed)
        _grad(False)
        try:
            model = self._module.ModelNew(*positional, **named)
            if not callable(model):
                raise TypeError("ModelNew cannot be called: let it inherit from torch.nn.Module")
            if isinstance(model, torch.nn.Module):
                model = model.to(self.device.device)
                model = model.to(self._half) if self._half else model
        except BaseException as error:
            raise Refusal("ModelNew cannot be constructed: " + first_causes(error, self.path)
                          ) from None
        return model

    def _cast(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(dtype=self._half or torch.float32).to(self.device.device)

    def _like_kernelbench(self, value, cast):
        """KernelBench casts every input, integers too, and the module's floating tensors."""
        return value.to(self._half or torch.float32) if self.kernelbench and cast else value

    def _find_states(self):
        """For each parameter of the task, the candidate's of that name and shape, or None."""
        if not isinstance(self.model, torch.nn.Module):
            return [None] * len(self.task.states)
        given, outside = state.collect(self.model)
        own = {}
        for s in given + outside:
            own[s.label] = s
            own.setdefault(re.sub(r"\W", "_", s.label), s)
        found = []
        for item in self.task.states:
            s = own.get(item.get("label") or item["name"])
            fits = s is not None and list(s.tensor.shape) == list(item["shape"])
            found.append(s if fits else None)
        kept = [i.get("label") or i["name"] for i, s in zip(self.task.states, found) if s is None]
        if kept:
            self.notes = [
                f"ModelNew has no {', '.join(kept)} of the module's shape: its own values, as "
                "constructed under the same seed, stand for them"
            ]
        return found

    def _build_folder(self):
        """Keys builds by the file's content, so that candidates never share any."""
        with open(self.path, "rb") as file:
            content = hashlib.sha256(file.read()).hexdigest()[:16]
        base = os.environ.get("KERNELPRO_BUILDS") or os.path.join(
            tempfile.gettempdir(), "kernelpro_builds")
        for name, folder in (("TORCH_EXTENSIONS_DIR", "torch"), ("TRITON_CACHE_DIR", "triton"),
                             ("TORCHINDUCTOR_CACHE_DIR", "inductor")):
            path = os.path.join(base, content, folder)
            os.makedirs(path, exist_ok=True)
            os.environ[name] = path


def set_flags(precision, kernelbench):
    """Sets the contract's arithmetic; under KernelBench's policy, PyTorch's defaults."""
    set_arithmetic_flags(tf32=not kernelbench and precision == "tf32")
    if kernelbench:
        return
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    cudnn.allow_tf32 = precision == "tf32"
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        try:
            setattr(matmul, name, False)
        except (AttributeError, AssertionError, RuntimeError):
            pass  # not in this torch


def outputs_of(result, subject, device):
    """The tensors of a result, in order, checked against the task: refuses, by rule, types that
    compute when read, and other devices, shapes and dtypes."""
    wanted = subject.task.outputs
    tensors, others = [], []
    tree.flatten(result, "out", tensors, others)
    if any(value is not None for _, value in others):
        kinds = sorted({type(v).__name__ for _, v in others if v is not None})
        raise Refusal(f"forward returns {', '.join(kinds)} where a tensor belongs", "not-a-tensor")
    if len(tensors) != len(wanted):
        raise Refusal(f"forward returns {len(tensors)} tensors, but the module {len(wanted)}",
                      "output-shape")
    for (label, tensor), item in zip(tensors, wanted):
        if promise := plain.promise(tensor):
            raise Refusal(f"the output {label} is {promise}, not a plain dense tensor",
                          "not-a-tensor",
                          "compute the values in forward, into a tensor of its own")
        if list(tensor.shape) != list(item["shape"]):
            raise Refusal(f"the output {label} has the shape {list(tensor.shape)}, not "
                          f"{list(item['shape'])}", "output-shape")
        dtype = subject.output_type(item["torch_dtype"])
        if tensor.dtype != dtype:
            raise Refusal(f"the output {label} has the type {_name(tensor.dtype)}, not "
                          f"{_name(dtype)}", "output-type")
        if tensor.device.type != device.name:
            raise Refusal(f"the output {label} is on {tensor.device}", "output-device")
    return [tensor for _, tensor in tensors]


def _name(dtype):
    return str(dtype).replace("torch.", "")


# Frames of no use to a candidate's writer.
_NOT_THEIRS = (os.path.dirname(os.path.abspath(__file__)), "importlib", "-packages/")

# Error lines of nvcc, g++, ninja and Triton.
_ERROR = re.compile(r"(: (fatal )?error\b|\berror:|^ptxas (fatal|error)|undefined reference)")


def first_causes(error, path):
    """For the writer: the compilers' first errors, or the exception and its location."""
    summary = traceback.TracebackException(type(error), error, error.__traceback__)
    words = "".join(summary.format_exception_only()).rstrip()
    lines = words.splitlines()
    if summary.__cause__ is not None:  # load_inline: ninja's output
        lines += "".join(summary.__cause__.format()).splitlines()
    if type(error).__module__.startswith("triton.compiler"):
        raise Refusal(_named(words[-2500:], path), "compile")
    causes = [i for i, line in enumerate(lines) if _ERROR.search(line)]
    if causes and not isinstance(error, SyntaxError):
        kept, last = [], -1
        for i in causes[:5]:
            kept += lines[max(i, last + 1):i + 3]  # with the source line and its caret
            last = i + 2
        return _named("\n".join(kept), path)
    frames = [f for f in summary.stack if not any(part in f.filename for part in _NOT_THEIRS)]
    where = "".join(traceback.StackSummary.from_list(frames[-4:]).format()).rstrip()
    return _named(f"{words[-2500:]}\n{where}".rstrip(), path)


def _named(text, path):
    text = text.replace(path, os.path.basename(path))
    return re.sub(r"\S*/(main\.cpp|cuda\.cu)\b", r"\1", text)[-4000:]
