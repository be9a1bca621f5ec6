# SPDX-License-Identifier: Apache-2.0
"""The role "candidate": calls PyTorch candidates in host form, on the judge's buffers.

The commands are in src/core/plan/protocol.h. This process runs the candidate's code, so nothing that it
says counts: the judge reveals the inputs, takes the outputs away and times what lies between
(src/measure/worker/cuda/judge_turn.h). Everything from the order at the gate to the answer is in the
time of the call, in particular everything that is done with the result. Refusals by name:

    compile         the file cannot be imported or does not define ModelNew
    not-a-tensor    a result that is no plain tensor
    output-shape, output-type, output-device
"""

import contextlib
import sys

import torch

from . import buffers as memory
from . import devices, plain, tree
from .channel import Refusal
from .gate import Gate
from .module_file import ModuleFile, seed_everything
from .subject import Subject, first_causes, outputs_of


class TaskSide:
    """The task's view of one case: the nested arguments, the tensors, the constructor arguments.
    Without a module, the task calls forward(inputs..., parameters...) of ModelNew()."""

    def __init__(self, tensors, source, path, dims):
        by_role = {"input": [], "parameter": [], "output": []}
        for index, tensor in enumerate(tensors):
            item = {**tensor, "index": index, "torch_dtype": memory.DTYPES[tensor["dtype"]]}
            by_role[tensor["role"]].append(item)
        self.inputs, self.states = by_role["input"], by_role["parameter"]
        self.outputs = by_role["output"]
        self.recast = False  # the contract and the file give tensors different types
        self.file = None
        if not source:
            self.inputs, self.states = self.inputs + self.states, []
            self.arguments = [tree.Leaf(i) for i in range(len(self.inputs))]
            return
        self.file = ModuleFile(source, path, dims)
        self.arguments, given = _arguments(self.file)
        if len(given) != len(self.inputs):
            raise Refusal("the task's inputs are not those of its module", "environment",
                          "run again; report this with the task")
        self.recast = any(t.dtype != i["torch_dtype"] for t, i in zip(given, self.inputs))

    def init_inputs(self, prepare):
        return ([], {}) if self.file is None else self.file.init_inputs(prepare)


def _arguments(file):
    """(forward's nested arguments, their tensors), without data if get_inputs() allows."""
    for place in ("meta", None) if hasattr(torch, "get_default_device") else (None,):
        seed_everything(0)
        try:
            with torch.device(place) if place else contextlib.nullcontext():
                values = file.inputs()
        except Refusal:
            if place is None:
                raise
            continue
        tensors = []
        template = [tree.flatten(value, "", tensors) for value in values]
        return template, [tensor for _, tensor in tensors]


class OpenCase:
    """A case's tensors over the memory of this process's stage, which holds one set at a time."""

    def __init__(self, values):
        self.slots = values["layout"]["slots"]
        self.tensors = values["tensors"]
        self.dims = values.get("dims") or {}
        self._mappings = {}  # by slot
        self._views = {}

    def map(self, slot, fd, device):
        _, _, _, size = self.slots[slot]
        self._mappings[slot] = memory.map_memory(fd, size, device.name)

    def tensor(self, slot):
        if slot not in self._views:
            address, _, mapping, _ = self.slots[slot]
            about = self.tensors[slot]
            self._views[slot] = self._mappings[slot].tensor(address - mapping, about["dtype"],
                                                            about["shape"])
        return self._views[slot]

    def tensors_of(self, items):
        return [self.tensor(item["index"]) for item in items]

    def close(self):
        self._views = {}
        for mapping in self._mappings.values():
            mapping.close()
        self._mappings = {}


class Candidate:
    def __init__(self, device):
        self.device = device
        self._gate = None
        self._cases = {}
        self._tasks = {}  # case -> TaskSide
        self._subjects = {}  # (case, name) -> Subject

    def handlers(self):
        return {"hello": lambda command: None, "gate": self.gate, "open": self.open,
                "memory": self.memory, "load": self.load, "ping": self.ping, "call": self.call}

    def gate(self, command):
        if len(command.fds) != 1:
            raise Refusal("no gate was given", "environment")
        self._gate = Gate(command.fds[0])

    def open(self, command):
        self._subjects, self._tasks = {}, {}
        for case in self._cases.values():
            case.close()
        self._cases = {each["case"]: OpenCase(each) for each in command.json["cases"]}

    def memory(self, command):
        case = self._case(command)
        slots = command.json["slots"]
        if len(command.fds) != len(slots):
            raise Refusal("descriptors and slots differ in number", "environment")
        for slot, fd in zip(slots, command.fds):
            case.map(slot, fd, self.device)

    def load(self, command):
        name = command.json["case"]
        case = self._case(command)
        if name not in self._tasks:
            self._tasks[name] = TaskSide(case.tensors, command.get("task_source", ""),
                                         command.get("task_path", ""), case.dims)
        self._subjects.pop((name, command.json["subject"]), None)
        plain.learn(case.tensor(0))
        task = self._tasks[name]
        subject = Subject(command.json["module"], task, self.device,
                          command.get("precision", "fp32"), command.get("policy", "contract"))
        subject.settle_in(case.tensors_of(task.states))
        self._subjects[name, command.json["subject"]] = subject
        return {"facts": {}, "notes": subject.notes}

    def ping(self, command):
        """A turn without a call: the same small piece of work twice. Returns how long the second
        one took; the first also waited until the GPU worked for this process again."""
        turn = command.json["turn"]
        self._gate.wait(turn)
        self.device.little_work()
        begin = devices.now_us()
        self.device.little_work()
        us = devices.now_us() - begin
        self._gate.answer(turn)
        return {"us": us}

    def call(self, command):
        case, subject = self._case(command), self._subject(command)
        task, turn = subject.task, command.json["turn"]
        inputs, states = case.tensors_of(task.inputs), case.tensors_of(task.states)
        targets = case.tensors_of(task.outputs)
        self.device.enter()
        self._gate.wait(turn)
        try:
            subject.write(states)
            result = subject.call(subject.arguments(inputs))
            self.device.enter()
            for target, output in zip(targets, outputs_of(result, subject, self.device)):
                self.device.copy(target, output)
            self.device.synchronize()
        except Refusal:
            raise
        except BaseException as error:  # SystemExit too: the candidate crashed, with this text
            raise Refusal(first_causes(error, subject.path)) from None
        self._gate.answer(turn)

    def _case(self, command):
        case = self._cases.get(command.json.get("case"))
        if case is None:
            raise Refusal(f"no case {command.json.get('case')!r} is open", "environment")
        return case

    def _subject(self, command):
        key = command.json["case"], command.json["subject"]
        if key not in self._subjects:
            raise Refusal(f"no subject {key[1]!r} is loaded", "environment")
        return self._subjects[key]


_SMALL = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""


def _warm():
    """Does in advance what the first load would wait for, PyTorch's lazy imports: this process may
    start before its candidate exists. Without the GPU's context: it may never be needed."""
    try:
        _arguments(ModuleFile(_SMALL))
    except Exception:
        pass  # the first command reports what is wrong


def _why_no_gpu():
    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} is built without CUDA"
    try:
        torch.cuda.init()
    except Exception as error:
        return str(error).strip().splitlines()[0]
    return "no device is visible"


def serve(channel, device="cuda"):
    sys.dont_write_bytecode = True
    _warm()
    worker = None

    def ready(verb):
        def handle(command):
            nonlocal worker
            if worker is None:
                if device == "cuda" and not torch.cuda.is_available():
                    raise Refusal(f"PyTorch finds no GPU here: {_why_no_gpu()}", "environment",
                                  "`kernelpro doctor` shows what is missing")
                worker = Candidate(devices.make(device))
            try:
                return worker.handlers()[verb](command)
            except Refusal:
                raise
            except Exception as error:  # the candidate broke the GPU context
                raise Refusal(first_causes(error, "candidate")) from None

        return handle

    verbs = ("hello", "gate", "open", "memory", "load", "ping", "call")
    channel.serve({"imported": lambda command: None, **{verb: ready(verb) for verb in verbs}})
