# SPDX-License-Identifier: Apache-2.0
"""The role "reference": describes modules, draws inputs, computes expected results.

Commands (src/task/reference/module_reference.cc sends them; every member is required, but for the frames of an attach that says "more"):
    hello     -> torch, versions
    describe  source, path, dims -> items, dims, constants, ... (describe.Description.answer)
    attach    source, path, dims, set, precision, tensors (how many), maps [bytes] with a descriptor
              for each (those of frames with "more": true that came before included), buffers
              [{tensor, expected, dtype, shape, map, offset}]
    draw      dims, set, seed, kind -> changed
    compute   dims, set, numerics, twice -> milliseconds, processor_s, random
    detach    dims
Sets are kept under the case's dimensions and the set's number.
"""

import json
import os
import traceback
import warnings

import torch

from . import buffers as memory
from . import compute as computing
from . import describe as describing
from . import draw, quick_import, state
from .channel import Refusal
from .module_file import ModuleFile, arithmetic_flags, set_arithmetic_flags, telling

_MOST_LOADED = 16
_MOST_STATE_BYTES = 4 << 30  # of constructed modules without an attached case


class Loaded:
    """A task file with one choice of dimensions; its module is constructed on demand."""

    def __init__(self, source, path, dims, device):
        self.device = device
        self.draws_on_device = None  # unknown so far
        self.flags = None  # PyTorch's switches as set by the file
        self.ways = computing.Ways()
        self.description = None
        self.forget_model()
        default = torch.get_default_dtype()
        try:
            self.file = ModuleFile(source, path, dims)
            self.default_dtype = torch.get_default_dtype()
            self.description = describing.describe(self.file, device, self._on_device)
        finally:
            torch.set_default_dtype(default)
            self.release()

    def model(self):
        """The module, constructed on the CPU at the first call, as KernelBench does. Its states
        stay there until they are bound to other memory."""
        if self._model is None:
            before = torch.get_default_dtype()
            torch.set_default_dtype(self.default_dtype)
            try:
                set_arithmetic_flags(self.file.flags)
                model = self.file.construct()
                self.flags = arithmetic_flags()
            finally:
                torch.set_default_dtype(before)
            self._given, self._outside = state.collect(model)
            self._initial = [s.tensor.data for s in self._given]
            self._outside_initial = [s.tensor.data.clone() for s in self._outside]
            if self.description is not None:
                self._check_states()
            self._attributes = state.Attributes(model)
            self._model = model
        return self._model

    def _on_device(self):
        """The module with copies of its states on the device; `release` removes them."""
        model = self.model()
        values = self._initial + self._outside_initial
        for s, value in zip(self._given + self._outside, values):
            s.tensor.data = value.to(self.device, copy=True)
        return model

    def _check_states(self):
        described = [(item.label, item.shape) for item in self.description.states]
        found = [(s.label, list(s.tensor.shape)) for s in self._given]
        if described != found:
            raise Refusal("the module's parameters differ from those when it was described", "task",
                          "let the constructor create the same ones every time")

    def states(self):
        """The module's states, after restoring its attributes."""
        self.model()
        self._attributes.restore()
        return self._given, self._outside

    def initial(self):
        """The states' values as constructed; kept on the device once drawn there, if small relative
        to its memory."""
        self.model()
        if self._ready is None:
            self._ready = self._initial
            if self.device == "cuda":
                room = torch.cuda.get_device_properties(0).total_memory // 50
                if self.state_bytes() < room:
                    self._ready = [value.to("cuda") for value in self._initial]
        return self._ready

    def outside_values(self):
        return self._outside_initial

    def state_bytes(self):
        """Bytes of the constructed module; 0 if there is none."""
        return sum(v.numel() * v.element_size() for v in self._initial)

    def forget_copies(self):
        self._ready = None

    def forget_model(self):
        """Drops the module; the next use constructs it again."""
        self._model = self._ready = None
        self._given, self._outside, self._initial, self._outside_initial = [], [], [], []

    def release(self):
        """Releases the judge's buffers and everything that forward left behind."""
        if self._model is not None:
            self._attributes.restore()
            values = self._initial + self._outside_initial
            for s, value in zip(self._given + self._outside, values):
                s.tensor.data = value
        draw.del_cached()


class Attached:
    """One set's buffers as tensors."""

    def __init__(self, device, precision):
        self.device, self.precision = device, precision
        # The half type to which the task casts a float32 module, if any.
        self.half = draw.PRECISIONS[precision] if precision in ("fp16", "bf16") else None
        self.inputs, self.states, self.expected = [], [], []
        self.seed = 0
        self.roundings = 0  # computations with rounded operands so far
        self._maps = []

    def fill(self, command, loaded, fds):
        sizes = command["maps"]
        if len(sizes) != len(fds):
            raise Refusal("descriptors and maps differ in number")
        self._maps = [memory.map_memory(fd, size, self.device) for fd, size in zip(fds, sizes)]
        places = {}
        for buffer in command["buffers"]:
            places[buffer["tensor"], buffer["expected"]] = self._maps[buffer["map"]].tensor(
                buffer["offset"], buffer["dtype"], buffer["shape"])
        description = loaded.description
        items = description.items
        if command["tensors"] != len(items):
            raise Refusal("the task has another number of tensors than its module")
        first_state = len(description.inputs)
        first_output = first_state + len(description.states)
        for i, item in enumerate(items):
            if i >= first_output:
                self.expected.append(places.get((i, True)))
            elif (i, False) not in places:
                raise Refusal(f"no buffer was given for {item.label}")
            elif i >= first_state:
                self.states.append(places[i, False])
            else:
                self.inputs.append(places[i, False])

    def close(self):
        self.inputs, self.states, self.expected = [], [], []
        for each in self._maps:
            each.close()
        self._maps = []


class Reference:
    def __init__(self, device):
        self.device = device
        self._loaded = {}  # (source, dims) -> Loaded
        self._cases = {}  # dims -> the last attached Loaded
        self._sets = {}  # (dims, set) -> Attached
        self._pending = []  # descriptors of an attach split over several frames

    def handlers(self):
        return {"hello": self.hello, "describe": self.describe, "attach": self.attach,
                "draw": self.draw, "compute": self.compute, "detach": self.detach}

    def hello(self, command):
        if self.device == "cuda" and not torch.cuda.is_available():
            how = ("this PyTorch is built without CUDA" if torch.version.cuda is None
                   else "PyTorch finds no usable GPU or driver")
            raise Refusal(f"PyTorch {torch.__version__} cannot use CUDA: {how}", "environment",
                          "install a CUDA build of PyTorch and check nvidia-smi")
        cuda = f", CUDA {torch.version.cuda}" if torch.version.cuda else ""
        return {"torch": torch.__version__, "versions": f"PyTorch {torch.__version__}{cuda}"}

    def _load(self, command):
        dims = command.get("dims") or {}
        key = (command.get("source"), _key(dims))
        if key not in self._loaded:
            if len(self._loaded) >= _MOST_LOADED:
                attached = set(map(id, self._cases.values()))
                self._loaded = {k: v for k, v in self._loaded.items() if id(v) in attached}
            what = command.get("source"), command.get("path"), dims, self.device
            try:
                loaded = Loaded(*what)
            except Refusal:
                if not quick_import.complete():
                    raise
                loaded = Loaded(*what)  # it may need the deferred imports
            self._loaded[key] = self._loaded[key[0], _key(loaded.file.dims)] = loaded
        return self._loaded[key]

    def _shed_models(self):
        """Drops modules of sizes that were only described, which together could fill memory."""
        held = 0
        attached = set(map(id, self._cases.values()))
        for loaded in list(dict.fromkeys(reversed(list(self._loaded.values())))):
            held += loaded.state_bytes()
            if held > _MOST_STATE_BYTES and id(loaded) not in attached:
                held -= loaded.state_bytes()
                loaded.forget_model()

    def describe(self, command):
        loaded = self._load(command)
        self._shed_models()
        draw.del_cached()
        return {**loaded.description.answer(), "dims": loaded.file.dims,
                "torch_version": torch.__version__}

    def attach(self, command):
        self._pending += command.fds
        command.fds = []
        if command.get("more"):
            return None
        fds, self._pending = self._pending, []
        try:
            loaded = self._load(command)
            key = _key(command.get("dims"))
            attached = Attached(self.device, command.get("precision"))
            with telling("the judge's buffers cannot be mapped"):
                attached.fill(command.json, loaded, fds)
        finally:
            for fd in fds:
                os.close(fd)
        before = self._sets.pop((key, command.get("set")), None)
        if before is not None:
            before.close()
        self._cases[key] = loaded
        self._sets[key, command.get("set")] = attached
        return None

    def _attached(self, command):
        key = _key(command.get("dims"))
        found = self._sets.get((key, command.get("set")))
        if found is None:
            raise Refusal("no buffers are attached for this case and set")
        return self._cases[key], found

    def draw(self, command):
        loaded, attached = self._attached(command)
        seed, kind = command.get("seed"), command.get("kind")
        with torch.no_grad(), telling("the inputs cannot be drawn"):
            changed = draw.draw_states(loaded, seed, kind, attached.states)
            changed_inputs = draw.draw_inputs(loaded, seed, kind, attached.precision,
                                              attached.inputs)
        if kind == "kernelbench":
            attached.seed = draw.kernelbench_trial_seed(seed)
        self._settle()
        return {"changed": changed if kind == "parameters" else changed_inputs}

    def compute(self, command):
        loaded, attached = self._attached(command)
        try:
            with torch.no_grad():
                return computing.compute(loaded, attached, command.get("numerics"),
                                         command.get("twice"))
        except Refusal as refusal:  # its frames keep the computation's memory alive
            refused = Refusal(refusal.error, refusal.rule, refusal.next)
        finally:
            self._settle()
        raise refused

    def detach(self, command):
        key = _key(command.get("dims"))
        for each in [k for k in self._sets if k[0] == key]:
            self._sets.pop(each).close()
        loaded = self._cases.pop(key, None)
        if loaded is not None:
            loaded.forget_copies()
        draw.del_cached()
        return None

    def _settle(self):
        """Finishes all work before the answer is sent."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        draw.del_cached()


def _key(dims):
    return json.dumps(dims, sort_keys=True)


def _guarded(handler):
    """Keeps an unexpected failure in one module from ending the process for the others."""

    def guarded(command):
        try:
            return handler(command)
        except Refusal:
            raise
        except Exception:
            raise Refusal("the module cannot be handled:\n" + traceback.format_exc()[-3000:],
                          "task", "report this with the file") from None

    return guarded


def serve(channel, device):
    warnings.filterwarnings("ignore")
    handlers = Reference(device).handlers()
    channel.serve({verb: _guarded(handler) for verb, handler in handlers.items()})
