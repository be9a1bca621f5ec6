# SPDX-License-Identifier: Apache-2.0
"""The role "capture": runs a PyTorch candidate's call in a process without data and captures it, so
that its kernels can be judged like those of any other launch plan (docs/launch-plan.md).

    capture  a case as in "open" (candidate.py), what "load" says, and "folder" for files
             -> captures: [{"call", "images"}, ...] (src/core/plan/captured_call.h), notes, operators:
                those that launched the first one's steps (src/core/evidence/operators.h); none if unknown

Each case is captured twice, with all buffers elsewhere, other parameters and other inputs the second
time: what moves alike is an address, and what the module computed before the call counts as constant
only if it is the same both times. Any refusal means that the candidate has no launch plan.
"""

import ctypes
import gc
import json
import os
import sys

import torch

from . import buffers as memory
from . import plain
from .candidate import TaskSide
from .channel import Refusal
from .module_file import PARAMETER_SEED, first_line
from .operators import Operators
from .subject import Subject, first_causes, outputs_of

_WARM_UPS = 3  # compilers, autotuners and libraries do their one-time work in these


class Library:
    """libkernelpro_capture.so (src/measure/worker/capture/library.cc)."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        word, pointer, text = ctypes.c_ulonglong, ctypes.c_void_p, ctypes.c_char_p
        number = ctypes.c_int
        for name, result, types in (
                ("watch", text, []), ("open", text, [word, word, pointer, number, number]),
                ("close", None, []), ("slot", word, [number]),
                ("begin", text, [pointer, pointer, number]), ("end", text, [pointer]),
                ("number", number, [pointer]), ("short_of_memory", number, []),
                ("steps", number, [pointer]),
                ("export", text, [text, pointer])):
            function = getattr(self._library, "kp_capture_" + name)
            function.restype, function.argtypes = result, types

    def call(self, name, *arguments):
        """A function's value; for those that return a text, it is the reason of a refusal."""
        value = getattr(self._library, "kp_capture_" + name)(*arguments)
        if isinstance(value, bytes):
            raise Refusal(value.decode(errors="replace"), "capture")
        return value

    def take_over_memory(self, path):
        """From now on all of torch's device memory comes from the library."""
        allocator = torch.cuda.memory.CUDAPluggableAllocator(
            path, "kp_capture_allocate", "kp_capture_free")
        share = ctypes.cast(self._library.kp_capture_share, ctypes.c_void_p).value
        try:
            allocator.allocator().set_record_stream_fn(share)
        except AttributeError:
            pass  # memory that other streams use may be used again too early: results would differ
        torch.cuda.memory.change_current_allocator(allocator)

    def export(self, folder):
        failed = ctypes.c_int()
        text = self._library.kp_capture_export(folder.encode(), ctypes.byref(failed)).decode()
        if failed.value:
            rule, _, reason = text.partition(": ")
            raise Refusal(reason, rule)
        return json.loads(text)


class _Device:
    """What Subject and outputs_of ask of a device."""

    name = "cuda"

    def __init__(self):
        torch.cuda.init()
        self.device = torch.device("cuda", torch.cuda.current_device())


class Capture:
    def __init__(self, library):
        self._library = library
        self._device = _Device()

    def capture(self, command):
        values = command.json
        captures, notes, operators = [], [], []
        for second in (False, True):
            captures.append(self._once(values, second, notes, operators))
            _forget()
            self._library.call("close")
        return {"captures": captures, "notes": notes, "operators": operators}

    def _once(self, values, second, notes, operators):
        os.makedirs(values["folder"], exist_ok=True)
        self._open(values["layout"], second)
        tensors = values["tensors"]
        task = TaskSide(tensors, values.get("task_source", ""), values.get("task_path", ""),
                        values.get("dims") or {})
        views = [memory.tensor_at(self._library.call("slot", i), about["dtype"], about["shape"])
                 for i, about in enumerate(tensors)]
        plain.learn(views[0])
        subject = Subject(values["module"], task, self._device, values.get("precision", "fp32"),
                          values.get("policy", "contract"), PARAMETER_SEED + second)
        _bind(subject, task, views)
        inputs = [views[item["index"]] for item in task.inputs]
        torch.manual_seed(17 + second)
        for tensor in inputs:
            _fill(tensor)
        arguments = subject.arguments(inputs)
        if any(given is not cast for given, cast in zip(inputs, arguments)):
            raise Refusal("the policy casts the inputs of each call", "cast")
        slots = [item["index"] for item in task.outputs]
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            places = self._rehearse(subject, arguments, slots, stream)
            targets = [views[slot] for slot in slots]
            watched = None if second else self._watch(subject, arguments, stream, places, targets)
            copied, steps = self._captured(subject, arguments, stream, places, targets)
        if watched is not None and watched[0] == steps:
            operators.extend(watched[1])
        if copied and not second:
            notes.append(f"its output is not computed in place: {copied} of {len(slots)} outputs "
                         "are copied, in the time of a call")
        return self._library.export(values["folder"])

    def _open(self, layout, second):
        slots = [number for slot in layout["slots"] for number in slot]
        self._library.call("open", layout["base"], layout["reserve_bytes"],
                           (ctypes.c_ulonglong * len(slots))(*slots), len(layout["slots"]),
                           int(second))

    def _rehearse(self, subject, arguments, slots, stream):
        """Warms up; then captures a call to find which of its allocations become outputs. Returns
        pairs: the number of an allocation, the slot that it shall have."""
        for _ in range(_WARM_UPS):
            try:
                outputs_of(subject.call(arguments), subject, self._device)
                torch.cuda.synchronize()
            except Refusal:
                raise
            except BaseException as error:
                raise Refusal(first_causes(error, subject.path)) from None
        if self._library.call("short_of_memory"):
            raise Refusal("the GPU has too little memory left to capture it", "memory")
        places = []

        def look(outputs):
            for slot, output in zip(slots, outputs):
                storage = output.untyped_storage()
                number = self._library.call("number", storage.data_ptr())
                whole = output.is_contiguous() and output.storage_offset() == 0
                if number >= 0 and whole and number not in [n for n, _ in places]:
                    places.append((number, slot))

        self._call(subject, arguments, stream, [], look)
        return places

    def _watch(self, subject, arguments, stream, places, targets):
        """Captures a call under a mode that sees its operators; returns the number of its steps,
        and the operators. None if that fails: compilers may refuse such a mode. The plan never
        comes from this capture."""
        try:
            watch = Operators(subject.model, lambda: self._steps(stream))
            with watch:
                _, steps = self._captured(subject, arguments, stream, places, targets)
            return steps, watch.calls
        except Exception:
            return None

    def _steps(self, stream):
        return self._library.call("steps", stream.cuda_stream)

    def _captured(self, subject, arguments, stream, places, targets):
        """Captures a call; returns how many outputs had to be copied, and its steps."""
        copied = steps = 0

        def finish(outputs):
            nonlocal copied, steps
            for target, output in zip(targets, outputs):
                if output.data_ptr() != target.data_ptr():
                    target.copy_(output.detach())
                    copied += 1
            steps = self._steps(stream)

        self._call(subject, arguments, stream, places, finish)
        return copied, steps

    def _call(self, subject, arguments, stream, places, use):
        _forget()  # libraries' workspaces are allocated in the call
        flat = [number for place in places for number in place]
        self._library.call("begin", stream.cuda_stream, (ctypes.c_int * len(flat))(*flat),
                           len(places))
        failed = None
        try:
            use(outputs_of(subject.call(arguments), subject, self._device))
        except BaseException as error:
            failed = error
        try:
            self._library.call("end", stream.cuda_stream)
        except Refusal as refusal:
            failed = failed or refusal
        if isinstance(failed, Refusal):
            raise failed
        if failed is not None and self._library.call("short_of_memory"):
            raise Refusal("the GPU has too little memory left to capture it", "memory")
        if failed is not None:
            raise Refusal("a call cannot be captured: " + first_line(failed), "capture")


def _bind(subject, task, views):
    """Puts the module's parameters into the judge's slots, with the values that they have."""
    for state, item in zip(subject.states(), task.states):
        if state is None:
            continue
        view = views[item["index"]]
        if state.tensor.dtype != view.dtype:
            raise Refusal(f"the policy casts the parameter {item['name']}", "cast")
        view.copy_(state.tensor.data)
        state.tensor.data = view


def _fill(tensor):
    """Harmless values: indices of anything are 0."""
    if tensor.dtype.is_floating_point:
        tensor.uniform_()
    else:
        tensor.zero_()


def _forget():
    gc.collect()
    torch.cuda.synchronize()
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None:
        clear()


def serve(channel, path):
    sys.dont_write_bytecode = True
    gc.disable()  # when memory is freed must not depend on chance
    capture, problem = None, None
    try:
        library = Library(path)
        library.call("watch")
        library.take_over_memory(path)
        capture = Capture(library)
    except Refusal as refusal:
        problem = refusal.error
    except Exception as error:
        problem = f"{type(error).__name__}: {first_line(error)}"

    def run(command):
        if capture is None:
            raise Refusal(problem, "unavailable")
        try:
            return capture.capture(command)
        except Refusal:
            raise
        except BaseException as error:
            raise Refusal(first_causes(error, command.get("module", ""))) from None

    channel.serve({"hello": lambda command: {"usable": capture is not None}, "capture": run})
