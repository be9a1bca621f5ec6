# SPDX-License-Identifier: Apache-2.0
"""The role "baseline": times PyTorch itself on a task, by one method.

    time   source, path, dims, precision, kind, seconds -> times [us], sets, method

`kind` is "eager", "compile", "max-autotune" or "graph" (eager captured into a CUDA graph). All are
timed like candidates: L2 cold, on inputs that rotate through as many sets as fit, at the task's
precision. Per-call overhead counts, such as max-autotune's copies of inputs into its CUDA graph.
The caller kills the process on a timeout, so each command measures one method.
"""

import contextlib
import time

import torch

from . import devices
from .channel import Refusal
from .describe import TORCH
from .module_file import ModuleFile, first_line, seed_everything
from .subject import set_flags

_SETS = 4
_MOST, _LEAST = 100, 10
KINDS = ("eager", "compile", "max-autotune", "graph")


class Baseline:
    def __init__(self, device_name):
        self._name = device_name
        self._device = None
        self._loaded = None  # (key, model, sets)

    def time(self, command):
        with self.ready(command) as calls:
            times = self.measure(calls, command.get("seconds", 2.0))
        launch = "graph replay" if command.get("kind") == "graph" else "stream launch"
        method = f"{launch}, L2 cold" if self._name == "cuda" else "calls in turn, cache flushed"
        return {"times": times, "sets": len(calls), "method": method}

    @contextlib.contextmanager
    def ready(self, command):
        """Calls of the module on each set of inputs, compiled and warm; a with block to measure them in."""
        kind = command.get("kind")
        if kind not in KINDS:
            raise Refusal(f"unknown kind {kind!r}")
        if self._device is None:
            if self._name == "cuda" and not torch.cuda.is_available():
                raise Refusal("PyTorch finds no GPU here", "environment",
                              "`kernelpro doctor` shows what is missing")
            self._device = devices.make(self._name)
        model, sets = self._prepare(command)
        # After the module's file, which starts from PyTorch's default switches and may set others.
        set_flags(command.get("precision", "fp32"), False)
        try:
            calls = self._calls(kind, model, sets)
            with _without_gradients(calls[0]):
                for _ in range(3):
                    for call in calls:
                        call()
                self._device.synchronize()
                yield calls
        except Refusal:
            raise
        except Exception as error:
            raise Refusal(f"{type(error).__name__}: {first_line(error)}", "failed") from None

    def _prepare(self, command):
        key = command.get("source"), str(command.get("dims"))
        if self._loaded is not None and self._loaded[0] == key:
            return self._loaded[1:]
        file = ModuleFile(command.get("source"), command.get("path", ""),
                          command.get("dims") or {})
        model = file.construct().to(self._device.device)
        sets = [self._draw(file, 1)]
        size = sum(t.numel() * t.element_size() for t in _tensors(sets[0]))
        room = self._device.free_bytes() if self._name == "cuda" else 1 << 30
        for seed in range(2, _SETS + 1):
            if seed * size > 0.3 * room:
                break
            sets.append(self._draw(file, seed))
        self._loaded = key, model, sets
        return model, sets

    def _draw(self, file, seed):
        if self._name == "cuda" and TORCH >= (2, 1):
            try:
                seed_everything(seed)
                with torch.device("cuda"):
                    return _moved(file.inputs(), self._device.device)
            except Refusal:
                pass  # get_inputs() works only on the CPU
        seed_everything(seed)
        return _moved(file.inputs(), self._device.device)

    def _calls(self, kind, model, sets):
        if kind == "graph":
            return _captured(model, sets)
        if kind != "eager":
            if not hasattr(torch, "compile"):
                raise Refusal(f"PyTorch {torch.__version__} has no torch.compile", "failed")
            options = {} if kind == "compile" else {"mode": kind}
            model = torch.compile(model, dynamic=False, **options)
        return [lambda arguments=arguments: model(*arguments) for arguments in sets]

    def measure(self, calls, seconds):
        """Microseconds of each call, in turn, until `seconds` have passed."""
        self._device.rewrite_flush(int(time.time()))
        times, begin, lead = [], time.perf_counter(), devices.Lead()
        while len(times) < _MOST:
            spent = time.perf_counter() - begin
            if len(times) >= _LEAST and spent > seconds:
                break
            self._device.synchronize()
            self._device.begin(lead.microseconds())
            before = devices.now_us()
            result = calls[len(times) % len(calls)]()
            self._device.end()
            lead.add(devices.now_us() - before)
            times.append(self._device.between())
            del result
        return times


@contextlib.contextmanager
def _without_gradients(call):
    """Disables gradients, unless the module computes some itself."""
    with torch.no_grad():
        try:
            call()
            needed = False
        except RuntimeError as error:
            if "grad" not in str(error):
                raise
            needed = True
    with torch.set_grad_enabled(needed):
        yield


def _captured(model, sets):
    if not torch.cuda.is_available():
        raise Refusal("CUDA graphs need a GPU", "failed")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    graphs = []
    with torch.no_grad():
        with torch.cuda.stream(side):
            for _ in range(2):
                model(*sets[0])
        torch.cuda.current_stream().wait_stream(side)
        for arguments in sets:
            graph = torch.cuda.CUDAGraph()
            pool = graphs[0].pool() if graphs else None
            with torch.cuda.graph(graph, pool=pool):
                model(*arguments)
            graphs.append(graph)
    return [graph.replay for graph in graphs]


def _moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {k: _moved(v, device) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_moved(v, device) for v in value)
    return value


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def serve(channel, device="cuda"):
    channel.serve({"hello": lambda command: {"torch": torch.__version__},
                   "time": Baseline(device).time})
